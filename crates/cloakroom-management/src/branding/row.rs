//! The stored form of a branding, which a MAC protects.

use cloakroom_core::access::{AuthenticatedRow, optional_part};
use jiff::Timestamp;
use uuid::Uuid;

use super::color::{Color, Colors};
use super::image::{Image, ImageKind};
use super::{Branding, Error};

pub(super) struct BrandingRow {
    pub tenant_number: i32,
    pub id: Uuid,
    pub name: Option<String>,
    pub colors: StoredColors,
    pub dark_colors: StoredColors,
    pub logo: Option<Vec<u8>>,
    pub logo_type: Option<i16>,
    pub created_by: Uuid,
}

/// Accent color and the color of text on it.
pub(super) type StoredColors = (Option<String>, Option<String>);

impl AuthenticatedRow for BrandingRow {
    const DOMAIN: &'static str = "row.branding.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let text = |value: &Option<String>| optional_part(value.as_ref().map(String::as_bytes));
        let logo_type = self.logo_type.map(i16::to_be_bytes);
        vec![
            self.tenant_number.to_be_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            text(&self.name),
            text(&self.colors.0),
            text(&self.colors.1),
            text(&self.dark_colors.0),
            text(&self.dark_colors.1),
            optional_part(self.logo.as_deref()),
            optional_part(logo_type.as_ref().map(<[u8; 2]>::as_slice)),
            self.created_by.into_bytes().to_vec(),
        ]
    }
}

impl BrandingRow {
    pub(super) fn new(tenant_number: i32, branding: &Branding) -> Self {
        let stored = |colors: Option<Colors>| {
            let text = |color: Color| color.to_string();
            (
                colors.map(|colors| text(colors.accent)),
                colors.map(|colors| text(colors.accent_text)),
            )
        };
        Self {
            tenant_number,
            id: branding.id,
            name: branding.name.clone(),
            colors: stored(branding.colors),
            dark_colors: stored(branding.dark_colors),
            logo: branding.logo.as_ref().map(|logo| logo.bytes.clone()),
            logo_type: branding.logo.as_ref().map(|logo| logo.kind as i16),
            created_by: branding.created_by,
        }
    }

    /// Converts a row whose MAC was verified.
    pub(super) fn read(self, created_at: Timestamp) -> Result<Branding, Error> {
        let colors = |(accent, accent_text): StoredColors| {
            let parse = |text: Option<String>| text.as_deref().and_then(Color::parse);
            Some(Colors {
                accent: parse(accent)?,
                accent_text: parse(accent_text)?,
            })
        };
        let logo = match (self.logo, self.logo_type) {
            (Some(bytes), Some(number)) => Some(Image {
                kind: ImageKind::from_number(number).ok_or(Error::Altered)?,
                bytes,
            }),
            _ => None,
        };
        Ok(Branding {
            id: self.id,
            name: self.name,
            colors: colors(self.colors),
            dark_colors: colors(self.dark_colors),
            logo,
            created_by: self.created_by,
            created_at,
        })
    }
}
