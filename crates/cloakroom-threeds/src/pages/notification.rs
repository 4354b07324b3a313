//! Notification pages, the responses to the notifications of an issuer's page.
//!
//! The browser SDK drops messages without a boolean `isCompleted` or a string `id`, and does not verify the `id`. Each
//! message therefore has both, and `id` is the session ID.

use cloakroom_pages::asset::{Asset, NOTIFICATION};
use cloakroom_pages::{Message, Page, PageContext};
use serde_json::{Value, json};
use uuid::Uuid;

const SCRIPTS: &[Asset] = &[NOTIFICATION];

/// The 3DS Method completed. `closes`: it ran in a separate window, which must close.
pub fn method_notification(context: &PageContext, id: &Uuid, closes: bool) -> Page {
    let message = json!({ "type": "method", "isCompleted": true, "id": id });
    notification(context, &message, closes)
}

/// The challenge completed. The outcome is that of the RReq, if it was received; data from the browser is not used.
pub fn challenge_notification(
    context: &PageContext,
    id: &Uuid,
    is_successful: Option<bool>,
    closes: bool,
) -> Page {
    let mut message = json!({ "type": "challenge", "isCompleted": true, "id": id });
    if let Some(is_successful) = is_successful {
        let status = if is_successful {
            "successful"
        } else {
            "failed"
        };
        message["authenticationStatus"] = status.into();
    }
    notification(context, &message, closes)
}

/// The notification could not be processed. The browser SDK receives this message directly; helper pages do not
/// relay it.
pub fn failure_notification(context: &PageContext, id: &Uuid, details: &str) -> Page {
    let message = json!({ "type": "error", "isCompleted": false, "id": id, "details": details });
    notification(context, &message, false)
}

/// Shown when a notification URL is opened directly.
pub fn neutral(context: &PageContext) -> Page {
    let (title, text) = (Message::ChallengeTitle, Message::NoAction);
    page(context, title, text)
}

fn notification(context: &PageContext, message: &Value, closes: bool) -> Page {
    page(context, Message::ChallengeTitle, Message::PleaseWait)
        .with_scripts(SCRIPTS)
        .with_data(json!({ "message": message, "closes": closes }))
}

fn page(context: &PageContext, title: Message, text: Message) -> Page {
    let body = format!("<main><p>{}</p></main>", context.text(text));
    Page::framed(context, context.text(title), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(0x0c5f_09ab_1c2d_4e3f_8a9b_0c1d_2e3f_4a5b);

    #[test]
    fn messages_match_the_browser_sdk() {
        let context = &PageContext::new("", &http::HeaderMap::new());
        let id = "0c5f09ab-1c2d-4e3f-8a9b-0c1d2e3f4a5b";
        let challenge = json!({ "type": "challenge", "isCompleted": true, "id": id });
        let mut successful = challenge.clone();
        successful["authenticationStatus"] = "successful".into();
        let mut unsuccessful = challenge.clone();
        unsuccessful["authenticationStatus"] = "failed".into();
        let method = json!({ "type": "method", "isCompleted": true, "id": id });
        let error = json!({ "type": "error", "isCompleted": false, "id": id, "details": "why" });
        let cases = [
            (method_notification(context, &ID, false), &method, false),
            (method_notification(context, &ID, true), &method, true),
            (
                challenge_notification(context, &ID, None, false),
                &challenge,
                false,
            ),
            (
                challenge_notification(context, &ID, Some(true), true),
                &successful,
                true,
            ),
            (
                challenge_notification(context, &ID, Some(false), false),
                &unsuccessful,
                false,
            ),
            (failure_notification(context, &ID, "why"), &error, false),
        ];
        for (page, message, closes) in cases {
            let expected = json!({ "message": message, "closes": closes });
            assert_eq!(page.data(), &expected);
        }
        assert_eq!(neutral(context).data(), &Value::Null);
    }
}
