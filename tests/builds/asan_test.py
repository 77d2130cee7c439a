"""The suites of the graph-level passes hold under AddressSanitizer and UndefinedBehaviorSanitizer
(preset asan)."""
import re
import sys

import preset_build

preset_build.build('asan')
said = preset_build.run(preset_build.CTEST, '--preset', 'asan', '-j', '2', '--no-tests=error')
ran = re.search(r'100% tests passed, 0 tests failed out of (\d+)', said)
if not ran or int(ran.group(1)) < 10:
    sys.exit(f'few suites ran\n{said[-4000:]}')
print(ran.group(0))
