//! The summary as a few lines of text.
