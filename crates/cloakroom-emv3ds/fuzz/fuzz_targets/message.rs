//! Reads arbitrary bytes as a message: reading never panics, and a message that was read can be
//! written and read again.

#![no_main]

use cloakroom_emv3ds::{Component, Message, MessageKind, RangeTable, Version, read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    match read(input, &MessageKind::ALL, &Version::ALL) {
        Ok(message) => {
            let text = write(&message).expect("a message that was read can be written");
            let again = read(text.as_bytes(), &[message.kind()], &Version::ALL);
            assert_eq!(again.as_ref(), Ok(&message));
            if let Message::PRes(pres) = &message {
                let mut table = RangeTable::default();
                if table.apply(pres, true).is_ok() {
                    let mut starts = table.iter().map(|range| range.start.as_str());
                    assert!(starts.all(|start| table.find(start).is_some()));
                    let mut same = table.clone();
                    let _ = same.apply(pres, false);
                }
            }
        }
        Err(fault) => {
            let erro = fault.erro(Component::S, Version::V2_2_0);
            write(&erro.into()).expect("a fault converts to an Erro");
        }
    }
});
