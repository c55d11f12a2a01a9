//! All spellings of time windows become one: a derived table with window_start and window_end.
