//! The pages of a session: the card form, and what is shown once it is complete or has expired.

use cloakroom_management::branding::Branding;
use http::StatusCode;
use serde_json::json;

use super::session::{Session, Status};
use crate::asset::{Asset, CHECKOUT};
use crate::message::{self, Message};
use crate::page::{Page, PageContext, Summary, escape};

const SCRIPTS: &[Asset] = &[CHECKOUT];

/// Messages of the script.
const MESSAGES: &[Message] = &[
    Message::Required,
    Message::Incomplete,
    Message::Invalid,
    Message::Submitting,
    Message::Submitted,
    Message::NotSubmitted,
    Message::CorrectFields,
    Message::TooManyAttempts,
    Message::SecurityCodeHint,
    Message::Brand,
];

/// The page of a session, in its current state.
pub(super) fn page(
    context: &PageContext,
    session: &Session,
    branding: Option<&Branding>,
    page_key: &str,
) -> Page {
    let name = branding.and_then(|branding| branding.name.as_deref());
    let merchant = name.unwrap_or_else(|| host_of(&session.facts.return_url));
    let amount = session.amount();
    let summary = Summary {
        merchant,
        amount: amount.as_ref(),
        reference: session.facts.reference.as_deref(),
        branding,
    };
    let page = match session.status() {
        Status::Open => open(context, session, merchant, page_key),
        Status::Complete => {
            let text = context.text(Message::Submitted);
            let link = link(
                context,
                &session.return_url(None),
                Message::StepReturn,
                merchant,
            );
            notice(
                context,
                Message::CompleteTitle,
                &format!("{text}</p><p>{link}"),
            )
        }
        Status::Expired => {
            let text = context.about(Message::ExpiredText, merchant);
            let link = link(
                context,
                &session.cancel_url(),
                Message::StepReturn,
                merchant,
            );
            notice(
                context,
                Message::ExpiredTitle,
                &format!("{text}</p><p>{link}"),
            )
            .with_status(StatusCode::GONE)
        }
    };
    page.with_summary(&summary)
}

/// What a cardholder knows a merchant without a name by. The URL was validated.
fn host_of(url: &str) -> &str {
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    address.split(['/', '?', '#']).next().unwrap_or_default()
}

fn notice(context: &PageContext, title: Message, text: &str) -> Page {
    let title = context.text(title);
    let body = format!("<main><div class=\"panel\"><h1>{title}</h1><p>{text}</p></div></main>");
    Page::new(context, title, body)
}

/// The URL has an allowed host and one of the schemes http and https.
fn link(context: &PageContext, url: &str, text: Message, merchant: &str) -> String {
    let (url, text) = (escape(url), context.about(text, merchant));
    format!("<a class=\"button\" href=\"{url}\">{text}</a>")
}

fn open(context: &PageContext, session: &Session, merchant: &str, page_key: &str) -> Page {
    let title = context.text(Message::CardTitle);
    let text = |message: Message| context.text(message);
    let field = |field: &FieldMarkup<'_>| field.markup(context);
    let number = field(&FieldMarkup {
        extra: "<span class=\"brand\" id=\"brand\" aria-hidden=\"true\"></span>",
        hint: "<span class=\"visually-hidden\" id=\"brand-name\" role=\"status\"></span>",
        ..FieldMarkup::digits("number", Message::CardNumber, "cc-number", 24)
    });
    let hint = text(Message::ExpirationHint);
    let expiration = field(&FieldMarkup {
        placeholder: hint,
        ..FieldMarkup::digits("expiration", Message::ExpirationDate, "cc-exp", 9)
    });
    let code = field(&FieldMarkup {
        hint: "<span class=\"hint\" id=\"code-hint\"></span>",
        ..FieldMarkup::digits("code", Message::SecurityCode, "cc-csc", 4)
    });
    let name = match session.facts.collects_name {
        true => field(&FieldMarkup {
            mode: "text",
            ..FieldMarkup::digits("name", Message::CardholderName, "cc-name", 100)
        }),
        false => String::new(),
    };
    let (submit, script) = (text(Message::Submit), text(Message::ScriptRequired));
    let handling = context.about(Message::CardHandling, merchant);
    let cancel = escape(&session.cancel_url());
    let cancel_text = context.about(Message::CancelAndReturn, merchant);
    let body = format!(
        "<main><noscript><p class=\"panel\">{script}</p></noscript>\
         <form class=\"panel\" id=\"form\" novalidate aria-labelledby=\"title\"><h1 id=\"title\">{title}</h1>\
         <p class=\"status\" id=\"status\" role=\"alert\"></p>{number}\
         <div class=\"columns\">{expiration}{code}</div>{name}\
         <button class=\"button\" id=\"submit\" type=\"submit\">{submit}</button>\
         <p class=\"note\">{handling}</p></form></main>\
         <footer><a class=\"quiet\" href=\"{cancel}\">{cancel_text}</a></footer>"
    );
    let action = format!("{}/checkout/{page_key}/card", context.prefix);
    let messages = message::catalog(MESSAGES, context.language, merchant);
    Page::new(context, title, body)
        .with_scripts(SCRIPTS)
        .with_data(json!({ "action": action, "messages": messages }))
        .with_api_access()
}

/// An input with its label and the place of its error.
struct FieldMarkup<'a> {
    id: &'a str,
    label: Message,
    autocomplete: &'a str,
    mode: &'a str,
    length_max: usize,
    placeholder: &'a str,
    /// Markup inside the box of the input.
    extra: &'a str,
    /// Markup below the input.
    hint: &'a str,
}

impl<'a> FieldMarkup<'a> {
    fn digits(id: &'a str, label: Message, autocomplete: &'a str, length_max: usize) -> Self {
        Self {
            id,
            label,
            autocomplete,
            mode: "numeric",
            length_max,
            placeholder: "",
            extra: "",
            hint: "",
        }
    }

    fn markup(&self, context: &PageContext) -> String {
        let Self {
            id,
            autocomplete,
            mode,
            length_max,
            placeholder,
            extra,
            hint,
            ..
        } = self;
        let label = context.text(self.label);
        let described = match *id {
            "code" => "code-error code-hint",
            _ => &format!("{id}-error"),
        };
        format!(
            "<div class=\"field\"><label for=\"{id}\">{label}</label><div class=\"box\">\
             <input id=\"{id}\" type=\"text\" inputmode=\"{mode}\" autocomplete=\"{autocomplete}\" \
             maxlength=\"{length_max}\" placeholder=\"{placeholder}\" autocapitalize=\"off\" autocorrect=\"off\" \
             spellcheck=\"false\" aria-required=\"true\" aria-invalid=\"false\" aria-describedby=\"{described}\">{extra}</div>\
             {hint}<p class=\"error\" id=\"{id}-error\" aria-live=\"polite\"></p></div>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merchants_without_a_name_are_known_by_their_host() {
        let cases = [
            ("https://shop.example/a?b=c", "shop.example"),
            ("https://shop.example?b", "shop.example"),
            ("http://127.0.0.1:3000#x", "127.0.0.1:3000"),
        ];
        for (url, expected) in cases {
            assert_eq!(host_of(url), expected);
        }
    }
}
