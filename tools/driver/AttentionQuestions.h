// The attentions of a request as questions for the phase that decides (passes/decide/
// AttentionKinds.h): the graph of every kind at every length, compiled for the attention alone, its
// arguments and results in any layout, by the prices of the request.
//
// Invariant: a question decides nothing; it names what is to be decided.
#pragma once

#include "passes/decide/AttentionKinds.h"
#include "tools/driver/AttentionSites.h"
#include "tools/driver/Request.h"

namespace weft::driver {

/// Refers to the request and to the site, which must outlive it.
decision::AttentionQuestion questionOf(const Request &request, const AttentionSite &site);

}  // namespace weft::driver
