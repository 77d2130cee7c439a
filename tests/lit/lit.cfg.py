# lit tests of weft-opt: one file a subject; negative tests carry the id of the constraint they
# break.
import os
import lit.formats

config.name = "weft"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.weft_binary, "tests", "lit", "out")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.weft_binary, "bin"), config.filecheck_folder,
     os.environ.get("PATH", "")])
