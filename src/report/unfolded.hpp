// A step of every rank for itself beside the folded one, in documents and on pages.
#pragma once

#include "collcast/report/documents.hpp"
#include "report/document.hpp"

namespace collcast {

Json unfolded_json(const UnfoldedStep&, const StepResult& folded);
/// What of the time is different where nothing is folded.
Table unfolded_table(const UnfoldedStep&, const StepResult& folded);
/// How the two figures differ, and of what size the run was.
std::string unfolded_text(const UnfoldedStep&, Sharing);

}  // namespace collcast
