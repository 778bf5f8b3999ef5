//! Runs work on all cores if the feature `parallel` is enabled. Results are the same without it.

/// The results of `each` for all values, in the order of the values.
#[cfg(feature = "parallel")]
pub fn map<T: Send, R: Send>(all: Vec<T>, each: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    use rayon::prelude::*;

    all.into_par_iter().map(each).collect()
}

/// The results of `each` for all values, in the order of the values.
#[cfg(not(feature = "parallel"))]
pub fn map<T: Send, R: Send>(all: Vec<T>, each: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    all.into_iter().map(each).collect()
}
