//! What the vault answers to an issuer's page when it reports that it is done.
//!
//! The browser package drops messages without a boolean `isCompleted` or a textual `id`, and believes
//! the `id` it is told, so each message has both and the `id` is the session's.

use serde_json::{Value, json};
use uuid::Uuid;

use super::page::Page;

const NOTIFIED: &[&str] = &[include_str!("notified.js")];

/// The 3DS Method ran. `closes`: it ran in a window of its own, whose end is what is waited for.
pub fn method_notified(id: &Uuid, closes: bool) -> Page {
    let message = json!({ "type": "method", "isCompleted": true, "id": id });
    telling(&message, closes)
}

/// The challenge is over. The outcome is the one that the issuer sent to the vault, if it is known by
/// now: what passed through the browser does not count.
pub fn challenge_notified(id: &Uuid, is_successful: Option<bool>, closes: bool) -> Page {
    let mut message = json!({ "type": "challenge", "isCompleted": true, "id": id });
    if let Some(is_successful) = is_successful {
        let status = if is_successful {
            "successful"
        } else {
            "failed"
        };
        message["authenticationStatus"] = status.into();
    }
    telling(&message, closes)
}

/// The report could not be taken. Helper pages do not hand this on, the browser package gets it directly.
pub fn failed(id: &Uuid, details: &str) -> Page {
    let message = json!({ "type": "error", "isCompleted": false, "id": id, "details": details });
    telling(&message, false)
}

/// For whoever opens such an address by hand.
pub const fn neutral() -> Page {
    Page::new(
        "3-D Secure",
        "<p>There is nothing to do here. You can close this page.</p>",
    )
}

fn telling(message: &Value, closes: bool) -> Page {
    Page::new("3-D Secure", "<p>One moment, please.</p>")
        .with_scripts(NOTIFIED)
        .with_data(json!({ "message": message, "closes": closes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(0x0c5f_09ab_1c2d_4e3f_8a9b_0c1d_2e3f_4a5b);

    #[test]
    fn messages_are_the_ones_that_the_browser_package_waits_for() {
        let id = "0c5f09ab-1c2d-4e3f-8a9b-0c1d2e3f4a5b";
        let challenge = json!({ "type": "challenge", "isCompleted": true, "id": id });
        let mut successful = challenge.clone();
        successful["authenticationStatus"] = "successful".into();
        let mut unsuccessful = challenge.clone();
        unsuccessful["authenticationStatus"] = "failed".into();
        let method = json!({ "type": "method", "isCompleted": true, "id": id });
        let error = json!({ "type": "error", "isCompleted": false, "id": id, "details": "why" });
        let cases = [
            (method_notified(&ID, false), &method, false),
            (method_notified(&ID, true), &method, true),
            (challenge_notified(&ID, None, false), &challenge, false),
            (challenge_notified(&ID, Some(true), true), &successful, true),
            (
                challenge_notified(&ID, Some(false), false),
                &unsuccessful,
                false,
            ),
            (failed(&ID, "why"), &error, false),
        ];
        for (page, message, closes) in cases {
            let expected = json!({ "message": message, "closes": closes });
            assert_eq!(page.data(), &expected);
        }
        assert_eq!(neutral().data(), &Value::Null);
    }
}
