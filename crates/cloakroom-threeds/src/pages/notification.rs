//! Notification pages, the responses to the notifications of an issuer's page.
//!
//! The browser SDK drops messages without a boolean `isCompleted` or a string `id`, and does not verify the `id`. Each
//! message therefore has both, and `id` is the session ID.

use serde_json::{Value, json};
use uuid::Uuid;

use super::page::Page;

const NOTIFICATION: &[&str] = &[include_str!("notification.js")];

/// The 3DS Method completed. `closes`: it ran in a separate window, which must close.
pub fn method_notification(id: &Uuid, closes: bool) -> Page {
    let message = json!({ "type": "method", "isCompleted": true, "id": id });
    notification(&message, closes)
}

/// The challenge completed. The outcome is that of the RReq, if it was received; data from the browser is not used.
pub fn challenge_notification(id: &Uuid, is_successful: Option<bool>, closes: bool) -> Page {
    let mut message = json!({ "type": "challenge", "isCompleted": true, "id": id });
    if let Some(is_successful) = is_successful {
        let status = if is_successful {
            "successful"
        } else {
            "failed"
        };
        message["authenticationStatus"] = status.into();
    }
    notification(&message, closes)
}

/// The notification could not be processed. The browser SDK receives this message directly; helper pages do not
/// relay it.
pub fn failure_notification(id: &Uuid, details: &str) -> Page {
    let message = json!({ "type": "error", "isCompleted": false, "id": id, "details": details });
    notification(&message, false)
}

/// Shown when a notification URL is opened directly.
pub const fn neutral() -> Page {
    Page::new(
        "3-D Secure",
        "<p>No action is required. You can close this page.</p>",
    )
}

fn notification(message: &Value, closes: bool) -> Page {
    Page::new("3-D Secure", "<p>Please wait...</p>")
        .with_scripts(NOTIFICATION)
        .with_data(json!({ "message": message, "closes": closes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(0x0c5f_09ab_1c2d_4e3f_8a9b_0c1d_2e3f_4a5b);

    #[test]
    fn messages_match_the_browser_sdk() {
        let id = "0c5f09ab-1c2d-4e3f-8a9b-0c1d2e3f4a5b";
        let challenge = json!({ "type": "challenge", "isCompleted": true, "id": id });
        let mut successful = challenge.clone();
        successful["authenticationStatus"] = "successful".into();
        let mut unsuccessful = challenge.clone();
        unsuccessful["authenticationStatus"] = "failed".into();
        let method = json!({ "type": "method", "isCompleted": true, "id": id });
        let error = json!({ "type": "error", "isCompleted": false, "id": id, "details": "why" });
        let cases = [
            (method_notification(&ID, false), &method, false),
            (method_notification(&ID, true), &method, true),
            (challenge_notification(&ID, None, false), &challenge, false),
            (
                challenge_notification(&ID, Some(true), true),
                &successful,
                true,
            ),
            (
                challenge_notification(&ID, Some(false), false),
                &unsuccessful,
                false,
            ),
            (failure_notification(&ID, "why"), &error, false),
        ];
        for (page, message, closes) in cases {
            let expected = json!({ "message": message, "closes": closes });
            assert_eq!(page.data(), &expected);
        }
        assert_eq!(neutral().data(), &Value::Null);
    }
}
