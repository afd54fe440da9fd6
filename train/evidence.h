// Evidence beside weights: what the loss, the values and the output projection say of each cell of a pattern.
//
// A weight says how much of a value is mixed in; whether that matters to the decision is another question (Jain and
// Wallace 2019). Gradients come from one backward pass: with z = A v, dL/dA = dz v^T.
#pragma once

#include "train/interventions.h"

namespace tapehead::inline TAPEHEAD_REAL {

/// Of every head in one sequence; none when nothing in the batch counts in the loss.
std::vector<HeadEvidence> evidence(Model& model, const Batch& batch, Index sequence);

/// What the loss of one sequence rises by when a cell is masked by itself and its row scaled up to 1: of every head, by
/// cell [T, S]. NaN where the mask was already, or all of the row's weight. In the order of heads_of; one pass a cell.
std::vector<std::vector<float>> knock_outs(Model& model, const Batch& batch, Index sequence);

/// E |z . dL/dz| of each head, the mean over sequences: what the loss would change to first order if the head's output
/// were scaled (Michel, Levy and Neubig 2019, eq. 3). In the order of heads_of.
std::vector<double> head_importance(Model& model, const Batch& batch);

/// Of every head in one sequence.
std::vector<HeadProjections> projections(Model& model, const Batch& batch, Index sequence);

}  // namespace tapehead::inline TAPEHEAD_REAL
