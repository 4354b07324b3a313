//! Settings of the log.

use super::section::section;
use super::setting::choice;

section! {
    /// The log, which is written to standard error.
    pub struct Log in "log" {
        /// Minimum level of logged events.
        pub level: Level = Level::Info,
        /// Format of log lines: `json` for machines, `text` for people.
        pub format: Format = Format::Json,
    }
}

choice! {
    /// Minimum level of logged events.
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
    /// Format of log lines.
    pub enum Format {
        Json = "json",
        Text = "text",
    }
}
