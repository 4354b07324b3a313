//! Settings of the log.

use super::section::section;
use super::setting::choice;

section! {
    /// What is written to standard error.
    pub struct Log in "log" {
        /// Least level that is written.
        pub level: Level = Level::Info,
        /// Whether lines are for machines or for people.
        pub format: Format = Format::Json,
    }
}

choice! {
    /// Least level of an event that is written.
    #[derive(PartialOrd, Ord)]
    pub enum Level {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
}

choice! {
    /// How a line of the log is written.
    pub enum Format {
        Json = "json",
        Text = "text",
    }
}
