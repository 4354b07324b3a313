//! The command as people and programs use it: as a process, with its output, signals and files.

mod bootstrap;
mod canaries;
mod dev;
mod serve;
mod support;
