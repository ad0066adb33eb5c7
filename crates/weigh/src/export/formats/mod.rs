//! Kinds of files, one in each module.

mod csv;
#[cfg(feature = "hdf5")]
mod hdf5;
