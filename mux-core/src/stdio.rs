//! Standard streams that the process inherited. Decides how they are read and written without a trace on the open
//! files that are shared with others; never sets a flag on them.
