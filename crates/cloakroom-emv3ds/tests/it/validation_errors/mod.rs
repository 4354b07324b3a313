//! Validation errors of [`read`]: error codes and field paths.

mod fields;
mod messages;

use cloakroom_emv3ds::{Fault, Message, MessageKind, Version, read};

use crate::samples::{Case, Fields, text};

fn read_any(fields: &Fields) -> Result<Message, Fault> {
    read(&text(fields), &MessageKind::ALL, &Version::ALL)
}

fn code_and_detail(result: Result<Message, Fault>) -> (&'static str, String) {
    match result {
        Ok(_) => ("", String::new()),
        Err(fault) => (fault.code.code(), fault.detail),
    }
}

const BROWSER_PAYMENT: Case = Case {
    version: Version::V2_2_0,
    channel: "02",
    category: "01",
    indicator: "01",
};
