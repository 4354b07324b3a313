//! The hosted page, which runs the whole 3-D Secure flow for merchants that redirect the cardholder to it.
//!
//! It makes `POST` calls below `{api}/3ds/redirect/{session}`, with JSON bodies, JSON responses and the query of
//! the page itself, which contains the public key. `nonce` is the one that the page was served with. A page without
//! one, because another page has started, uses the nonce in the `sessionStorage` of its tab, or stops if there is none.
//!
//! | call | request | response |
//! | --- | --- | --- |
//! | `device` | `nonce`, `device_info` (the eight fields that the browser SDK sends) | `method_url` and `method_data` (value of the form field), or neither |
//! | `authenticate` | `nonce` | `status`: `done`, or `challenge` with `acs_url` and `creq` (value of the form field) |
//! | `finish` | `nonce` | `location`: the merchant's callback URL for the current outcome |
//! | `cancel` | `nonce` | the same, without waiting for the outcome of a challenge |
//!
//! If a call fails, the page continues with `finish`. If that fails, it shows an error.

use cloakroom_management::branding::Branding;
use cloakroom_pages::asset::{Asset, FRAME, HOSTED};
use cloakroom_pages::{Message, Money, Page, PageContext, Summary, message};
use serde_json::json;
use uuid::Uuid;

const SCRIPTS: &[Asset] = &[FRAME, HOSTED];

/// Messages of the script.
const MESSAGES: &[Message] = &[
    Message::ContactingBank,
    Message::ChallengeShown,
    Message::ChallengeFrame,
    Message::Returning,
    Message::NotConfirmed,
    Message::OtherWindow,
];

/// Data of the page.
#[derive(Debug)]
pub struct Hosted {
    pub session: Uuid,
    /// Authenticates the calls of the page; `None` if another page has started.
    pub nonce: Option<String>,
    /// Whether only `finish` is left to call.
    pub is_authenticated: bool,
    /// Base URL of the API, without a trailing slash. The page must be served from the same origin.
    pub api: String,
    pub merchant: String,
    pub amount: Option<Money>,
    pub branding: Option<Branding>,
}

pub fn hosted(context: &PageContext, page: &Hosted) -> Page {
    let merchant = page.merchant.as_str();
    let summary = Summary {
        merchant,
        amount: page.amount.as_ref(),
        reference: None,
        branding: page.branding.as_ref(),
    };
    let data = json!({
        "session": page.session,
        "nonce": page.nonce,
        "is_authenticated": page.is_authenticated,
        "api": page.api,
        "messages": message::catalog(MESSAGES, context.language, merchant),
    });
    Page::new(
        context,
        context.text(Message::ConfirmTitle),
        body(context, merchant),
    )
    .with_summary(&summary)
    .with_scripts(SCRIPTS)
    .with_data(data)
    .with_api_access()
    .with_issuers()
}

fn body(context: &PageContext, merchant: &str) -> String {
    let text = |message: Message| context.text(message);
    let about = |message: Message| context.about(message, merchant);
    let title = text(Message::ConfirmTitle);
    let steps = [
        text(Message::StepPrepare).to_owned(),
        text(Message::StepBank).to_owned(),
        about(Message::StepReturn),
    ];
    let steps = steps.map(|step| format!("<li>{step}</li>")).concat();
    let (preparing, script) = (text(Message::Preparing), text(Message::ScriptRequired));
    let retry = text(Message::TryAgain);
    let cancel = about(Message::CancelAndReturn);
    let (question, effect) = (text(Message::CancelQuestion), about(Message::CancelEffect));
    let (yes, no) = (text(Message::CancelYes), text(Message::CancelNo));
    format!(
        "<main id=\"main\"><div class=\"panel\"><h1>{title}</h1><ol class=\"steps\" id=\"steps\">{steps}</ol>\
         <noscript><p>{script}</p></noscript>\
         <div class=\"spinner\" id=\"spinner\" aria-hidden=\"true\"></div>\
         <p id=\"progress\" role=\"status\">{preparing}</p>\
         <button class=\"button\" id=\"retry\" type=\"button\" hidden>{retry}</button></div></main>\
         <section class=\"challenge\" id=\"challenge\" hidden></section>\
         <footer><button class=\"quiet\" id=\"cancel\" type=\"button\">{cancel}</button></footer>\
         <dialog id=\"dialog\" aria-labelledby=\"question\" aria-describedby=\"effect\">\
         <h2 id=\"question\">{question}</h2><p id=\"effect\">{effect}</p>\
         <div class=\"actions\"><button class=\"button\" id=\"stay\" type=\"button\">{no}</button>\
         <button class=\"button secondary\" id=\"leave\" type=\"button\">{yes}</button></div></dialog>"
    )
}
