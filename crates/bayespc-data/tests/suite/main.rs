//! All tests of files and tables, in one program: what they share is compiled and linked once.

mod bad_rows;
mod benchmark;
mod columns;
mod files;
mod tables;
