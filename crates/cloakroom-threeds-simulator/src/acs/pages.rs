//! The pages: plain, with nothing from elsewhere, and usable in the smallest challenge window.

use axum::response::{IntoResponse as _, Response};
use cloakroom_crypto::random_base58;
use http::{StatusCode, header};

use crate::behaviour::Page;
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

/// Long enough that a page is really loaded, short enough that nobody waits.
const POST_SCRIPT: &str = "setTimeout(function(){document.forms[0].submit()},50)";

/// Names of the currencies that examples use; others are shown by their number.
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

/// Asks the cardholder; `left` says how many attempts there are after a wrong one.
pub(super) fn challenge(transaction: &Transaction, page: Page, left: Option<u8>) -> Response {
    let (title, help, field, action, button) = match page {
        Page::OutOfBand => (
            "Approve in your bank's app",
            "Pretend that you have opened the app of your bank, and approve here.",
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
            "The code that would have been sent to your phone is 1234.",
            input("One-time code", "text", "one-time-code"),
            "submit",
            "Continue",
        ),
    };
    let wrong = left.map_or_else(String::new, |left| {
        let tries = if left == 1 { "try" } else { "tries" };
        format!("<p class=\"wrong\" role=\"alert\">That is not right. {left} {tries} left.</p>")
    });
    let trust = match transaction.wants_trust {
        true => "<p>You also agree that this merchant is trusted from now on.</p>",
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
            format!("<dt>Amount</dt><dd>{}</dd>", escape(&shown(amount)))
        });
    format!(
        "<dl><dt>Merchant</dt><dd>{}</dd>{amount}<dt>Card</dt><dd>•••• {}</dd></dl>",
        escape(&transaction.merchant),
        escape(&transaction.last_four),
    )
}

/// `12.34 EUR` for 1234 cents.
fn shown(amount: &Amount) -> String {
    let width = amount.exponent + 1;
    let digits = format!("{:0>width$}", amount.minor_units);
    let (whole, part) = digits.split_at(digits.len() - amount.exponent);
    let point = if part.is_empty() { "" } else { "." };
    let named = CURRENCIES.iter().find(|(code, _)| *code == amount.currency);
    let currency = named.map_or(amount.currency.as_str(), |(_, name)| name);
    format!("{whole}{point}{part} {currency}")
}

/// Posts a form to another address without being asked to.
pub(super) fn posting(url: &str, fields: &[(&str, &str)]) -> Response {
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
        "<p>One moment, please.</p><form method=\"post\" action=\"{}\">{inputs}\
         <noscript><button class=\"go\">Continue</button></noscript></form>",
        escape(url)
    );
    html(StatusCode::OK, "One moment", &body, Some(POST_SCRIPT))
}

/// The page of a 3DS Method that never tells that it is done.
pub(super) fn silent() -> Response {
    html(
        StatusCode::OK,
        "Nothing happens here",
        "<p>Nothing happens here.</p>",
        None,
    )
}

/// The end of a challenge that never goes back to the merchant.
pub(super) fn ended() -> Response {
    let body = "<h1>That was it</h1><p>The merchant is told the result, but this page does not \
                go back: that is what this card is for.</p>";
    html(StatusCode::OK, "That was it", body, None)
}

pub(super) fn refused(why: &str) -> Response {
    let body = format!(
        "<h1>This does not work</h1><p role=\"alert\">{}</p>",
        escape(why)
    );
    html(StatusCode::BAD_REQUEST, "This does not work", &body, None)
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

/// Text that means nothing to HTML.
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
    fn amounts_are_shown_as_people_write_them() {
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
            assert_eq!(shown(&amount), expected);
        }
    }

    #[test]
    fn what_a_merchant_is_called_is_no_markup() {
        assert_eq!(
            escape("<b>\"A\" & 'B'"),
            "&lt;b&gt;&quot;A&quot; &amp; &#39;B&#39;"
        );
    }
}
