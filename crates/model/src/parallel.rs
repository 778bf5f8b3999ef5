//! Work on all cores, where the feature `parallel` is switched on: results are the same without.

/// The results of `each`, in order.
#[cfg(feature = "parallel")]
pub fn map<T: Send, R: Send>(all: Vec<T>, each: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    use rayon::prelude::*;

    all.into_par_iter().map(each).collect()
}

/// The results of `each`, in order.
#[cfg(not(feature = "parallel"))]
pub fn map<T: Send, R: Send>(all: Vec<T>, each: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    all.into_iter().map(each).collect()
}
