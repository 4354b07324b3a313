//! The top of a page: which merchant it is about, and what is paid.

use cloakroom_management::branding::Branding;

use super::{PageContext, escape};
use crate::message::Message;
use crate::money::Money;

/// Merchant and purchase.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    pub merchant: &'a str,
    pub amount: Option<&'a Money>,
    /// The merchant's name for the purchase, such as an order number.
    pub reference: Option<&'a str>,
    pub branding: Option<&'a Branding>,
}

impl Summary<'_> {
    pub(super) fn header(&self, context: &PageContext) -> String {
        let prefix = &context.prefix;
        let logo = self.branding.filter(|branding| branding.logo.is_some());
        let logo = logo.map_or_else(String::new, |branding| {
            let id = branding.id;
            // The name beside it says the same, so the image has no text of its own.
            format!("<img class=\"logo\" src=\"{prefix}/pages/branding/{id}/logo\" alt=\"\">")
        });
        let fact = |class: &str, label: Message, value: Option<String>| {
            value.map_or_else(String::new, |value| {
                let (label, value) = (context.text(label), escape(&value));
                format!("<div class=\"{class}\"><dt>{label}</dt><dd>{value}</dd></div>")
            })
        };
        let amount = self.amount.map(|amount| amount.format(context.language));
        let amount = fact("amount", Message::Amount, amount);
        let reference = self.reference.map(str::to_owned);
        let reference = fact("reference", Message::Reference, reference);
        let purchase = match amount.is_empty() && reference.is_empty() {
            true => String::new(),
            false => format!("<dl class=\"purchase\">{amount}{reference}</dl>"),
        };
        let merchant = escape(self.merchant);
        format!(
            "<header class=\"summary\"><div class=\"merchant\">{logo}<span>{merchant}</span></div>{purchase}</header>"
        )
    }

    pub(super) fn colors_path(&self) -> Option<String> {
        let branding = self.branding?;
        let has_colors = branding.colors.is_some() || branding.dark_colors.is_some();
        has_colors.then(|| format!("/pages/branding/{}/colors.css", branding.id))
    }
}
