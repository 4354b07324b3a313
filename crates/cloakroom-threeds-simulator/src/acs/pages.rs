//! HTML pages without external resources, usable in the smallest challenge window.

use axum::response::{IntoResponse as _, Response};
use cloakroom_crypto::random_base58;
use http::{StatusCode, header};

use crate::behavior::Page;
use crate::transaction::{Amount, Transaction};

const STYLE: &str = "\
:root{color-scheme:light dark}\
*{box-sizing:border-box}\
body{margin:0;padding:12px;font:15px/1.4 system-ui,sans-serif;background:Canvas;color:CanvasText}\
main{max-width:26rem;margin:0 auto}\
header{border-bottom:1px solid GrayText;padding-bottom:6px;margin-bottom:10px;font-weight:600}\
h1{font-size:17px;margin:0 0 8px}\
p{margin:0 0 8px}\
dl{display:grid;grid-template-columns:auto 1fr;gap:2px 10px;margin:0 0 10px}\
dt{opacity:.75}dd{margin:0;overflow-wrap:anywhere}\
label{display:block;font-weight:600;margin-bottom:4px}\
input,button{font:inherit;width:100%;padding:8px;border-radius:6px;border:1px solid GrayText}\
button{margin-top:8px;cursor:pointer}\
button.go{background:#0b5cad;border-color:#0b5cad;color:#fff;font-weight:600}\
:focus-visible{outline:3px solid #ffb000;outline-offset:1px}\
.wrong{border-left:4px solid #c62828;padding-left:8px}\
.note{font-size:13px;opacity:.8;margin-top:10px}";

/// The delay lets the page load before it submits the form.
const POST_SCRIPT: &str = "setTimeout(function(){document.forms[0].submit()},50)";

/// Alphabetic codes of common currencies; others are shown by their numeric code.
const CURRENCIES: [(&str, &str); 8] = [
    ("036", "AUD"),
    ("124", "CAD"),
    ("392", "JPY"),
    ("756", "CHF"),
    ("826", "GBP"),
    ("840", "USD"),
    ("978", "EUR"),
    ("986", "BRL"),
];

/// The challenge page; `left` is the number of remaining attempts after invalid input.
pub(super) fn challenge(transaction: &Transaction, page: Page, left: Option<u8>) -> Response {
    let (title, help, field, action, button) = match page {
        Page::OutOfBand => (
            "Approve in your bank's app",
            "This simulates the approval in your bank's app.",
            String::new(),
            "approve",
            "Approve",
        ),
        Page::Password => (
            "Enter your password",
            "The password of every simulated card is 1234.",
            input("Password", "password", "current-password"),
            "submit",
            "Continue",
        ),
        _ => (
            "Enter the code",
            "The simulated one-time code is 1234.",
            input("One-time code", "text", "one-time-code"),
            "submit",
            "Continue",
        ),
    };
    let wrong = left.map_or_else(String::new, |left| {
        let tries = if left == 1 { "try" } else { "tries" };
        format!("<p class=\"wrong\" role=\"alert\">Incorrect. {left} {tries} left.</p>")
    });
    let trust = match transaction.requests_trust_listing {
        true => "<p>By continuing, you add this merchant to your trusted list.</p>",
        false => "",
    };
    let body = format!(
        "<h1>{title}</h1>{purchase}{wrong}<form method=\"post\" action=\"/acs/challenge/submit\">\
         <input type=\"hidden\" name=\"transaction\" value=\"{id}\">\
         <p id=\"help\">{help}</p>{trust}{field}\
         <button class=\"go\" name=\"action\" value=\"{action}\">{button}</button>\
         <button name=\"action\" value=\"cancel\" formnovalidate>Cancel</button></form>",
        purchase = purchase(transaction),
        id = escape(&transaction.acs_id),
    );
    html(StatusCode::OK, title, &body, None)
}

fn input(label: &str, kind: &str, autocomplete: &str) -> String {
    format!(
        "<label for=\"code\">{label}</label><input id=\"code\" name=\"code\" type=\"{kind}\" \
         inputmode=\"numeric\" autocomplete=\"{autocomplete}\" aria-describedby=\"help\" \
         maxlength=\"32\" required>"
    )
}

fn purchase(transaction: &Transaction) -> String {
    let amount = transaction
        .amount
        .as_ref()
        .map_or_else(String::new, |amount| {
            format!("<dt>Amount</dt><dd>{}</dd>", escape(&format_amount(amount)))
        });
    format!(
        "<dl><dt>Merchant</dt><dd>{}</dd>{amount}<dt>Card</dt><dd>•••• {}</dd></dl>",
        escape(&transaction.merchant),
        escape(&transaction.last_four),
    )
}

/// `12.34 EUR` for 1234 cents.
fn format_amount(amount: &Amount) -> String {
    let width = amount.exponent + 1;
    let digits = format!("{:0>width$}", amount.minor_units);
    let (whole, part) = digits.split_at(digits.len() - amount.exponent);
    let point = if part.is_empty() { "" } else { "." };
    let named = CURRENCIES.iter().find(|(code, _)| *code == amount.currency);
    let currency = named.map_or(amount.currency.as_str(), |(_, name)| name);
    format!("{whole}{point}{part} {currency}")
}

/// A page that submits a form on load.
pub(super) fn auto_submit_form(url: &str, fields: &[(&str, &str)]) -> Response {
    let inputs: String = fields
        .iter()
        .map(|(name, value)| {
            format!(
                "<input type=\"hidden\" name=\"{}\" value=\"{}\">",
                escape(name),
                escape(value)
            )
        })
        .collect();
    let body = format!(
        "<p>Please wait...</p><form method=\"post\" action=\"{}\">{inputs}\
         <noscript><button class=\"go\">Continue</button></noscript></form>",
        escape(url)
    );
    html(StatusCode::OK, "Please wait", &body, Some(POST_SCRIPT))
}

/// The page of a 3DS Method that never notifies the 3DS Server.
pub(super) fn method_without_notification() -> Response {
    html(
        StatusCode::OK,
        "3DS Method",
        "<p>This 3DS Method never completes.</p>",
        None,
    )
}

/// The last page of a challenge that never posts a CRes.
pub(super) fn challenge_completed() -> Response {
    let body = "<h1>Challenge completed</h1><p>The 3DS Server receives the result. This test card \
                does not return to the merchant.</p>";
    html(StatusCode::OK, "Challenge completed", body, None)
}

pub(super) fn error(reason: &str) -> Response {
    let body = format!(
        "<h1>Invalid request</h1><p role=\"alert\">{}</p>",
        escape(reason)
    );
    html(StatusCode::BAD_REQUEST, "Invalid request", &body, None)
}

fn html(status: StatusCode, title: &str, body: &str, script: Option<&str>) -> Response {
    let nonce = random_base58(22);
    let script = script.map_or_else(String::new, |script| {
        format!("<script nonce=\"{nonce}\">{script}</script>")
    });
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title} - Simulated issuer</title><style nonce=\"{nonce}\">{STYLE}</style></head>\
         <body><main><header>Simulated issuer</header>{body}\
         <p class=\"note\">This is a test. No bank is involved.</p></main>{script}</body></html>"
    );
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; \
         form-action *; base-uri 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    (status, headers, page).into_response()
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted_with_decimals_and_currency() {
        let cases = [
            ("1234", "978", 2, "12.34 EUR"),
            ("5", "840", 2, "0.05 USD"),
            ("500", "392", 0, "500 JPY"),
            ("1500", "048", 3, "1.500 048"),
        ];
        for (minor_units, currency, exponent, expected) in cases {
            let amount = Amount {
                minor_units: minor_units.to_owned(),
                currency: currency.to_owned(),
                exponent,
            };
            assert_eq!(format_amount(&amount), expected);
        }
    }

    #[test]
    fn merchant_names_are_escaped() {
        assert_eq!(
            escape("<b>\"A\" & 'B'"),
            "&lt;b&gt;&quot;A&quot; &amp; &#39;B&#39;"
        );
    }
}
