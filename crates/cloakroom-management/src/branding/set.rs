//! Sets the branding of a tenant.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Permission};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{AuditedStatement, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::ids;
use cloakroom_platform::one_line::one_line;

use super::color::{Color, Colors, DARK_SURFACE, LIGHT_SURFACE};
use super::image::{BYTES_MAX, Image};
use super::row::BrandingRow;
use super::{Branding, Error, store};

const NAME_LENGTH_MAX: usize = 50;

/// A branding to set, not yet validated.
#[derive(Default)]
pub struct NewBranding {
    pub name: Option<String>,
    pub colors: Option<NewColors>,
    pub dark_colors: Option<NewColors>,
    /// The image in Base64.
    pub logo: Option<String>,
}

#[derive(Default)]
pub struct NewColors {
    pub accent: Option<String>,
    pub accent_text: Option<String>,
}

/// Replaces the branding of the caller's tenant.
pub async fn set(
    vault: &Vault,
    caller: &Caller,
    new: NewBranding,
    template: &ResponseTemplate<'_, Branding>,
) -> Result<Branding, Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let mut errors = Vec::new();
    let branding = Branding {
        id: ids::new_uuid(),
        name: name(new.name.as_deref(), &mut errors),
        colors: colors("colors", new.colors, LIGHT_SURFACE, &mut errors),
        dark_colors: colors("dark_colors", new.dark_colors, DARK_SURFACE, &mut errors),
        logo: logo(new.logo, &mut errors),
        created_by: caller.application,
        created_at: vault.clock.now().await?,
    };
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Update, EntityKind::Tenant, id);
    let response = template.render_pending(&branding)?;
    let mut change = access_change::begin(vault, caller.tenant, &[Bucket::RESOURCES]).await?;
    match write(vault, &mut change, caller, &branding).await {
        Ok(()) => change.commit_with(&[entry], response).await?,
        Err(error) => {
            change.roll_back().await;
            return Err(error);
        }
    }
    Ok(branding)
}

async fn write(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    caller: &Caller,
    branding: &Branding,
) -> Result<(), Error> {
    let row = BrandingRow::new(caller.tenant.number, branding);
    let row_mac = row.row_mac(vault.keys.control());
    if let Some(former_mac) = store::find_mac(change, caller.tenant).await? {
        change.remove(Bucket::RESOURCES, &former_mac)?;
    }
    let statement = AuditedStatement::within(change.transaction());
    store::set(statement, &row, branding.created_at, &row_mac).await?;
    Ok(change.insert(Bucket::RESOURCES, &row_mac)?)
}

fn name(name: Option<&str>, errors: &mut Vec<FieldError>) -> Option<String> {
    one_line(name?, NAME_LENGTH_MAX)
        .map(str::to_owned)
        .map_err(|rule| errors.push(FieldError::new("name", rule)))
        .ok()
}

fn colors(
    attribute: &str,
    new: Option<NewColors>,
    surface: Color,
    errors: &mut Vec<FieldError>,
) -> Option<Colors> {
    let new = new?;
    let mut color = |name: &str, text: Option<String>| {
        let color = text.as_deref().and_then(Color::parse);
        if color.is_none() {
            errors.push(FieldError::new(format!("{attribute}.{name}"), Color::RULE));
        }
        color
    };
    let accent = color("accent", new.accent);
    let accent_text = color("accent_text", new.accent_text);
    let colors = Colors {
        accent: accent?,
        accent_text: accent_text?,
    };
    errors.extend(colors.check(attribute, surface));
    Some(colors)
}

fn logo(text: Option<String>, errors: &mut Vec<FieldError>) -> Option<Image> {
    let text = text?;
    // Base64 needs four characters for three bytes.
    let is_small = text.len() <= BYTES_MAX.div_ceil(3) * 4;
    let bytes = is_small.then(|| STANDARD.decode(text).ok()).flatten();
    let image = bytes.and_then(Image::parse);
    if image.is_none() {
        errors.push(FieldError::new("logo", Image::RULE));
    }
    image
}
