// One code value a thread, of any byte sum: also of sums that no state of a short trellis has.
const uint i = thread_position_in_grid.x;
if (i < uint(sums_shape[0])) out[i] = trellis_value<FORM>(sums[i]);
