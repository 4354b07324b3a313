//! JSON bodies of applications, keys, permissions and templates.

use cloakroom_core::access::{
    AccessRule, ApplicationKind, Container, NewGrants, NewRule, Permission, Transform,
};
use cloakroom_platform::api::{Object, format_utc};
use cloakroom_platform::ids::TenantId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    Application, ApplicationChange, ApplicationKey, CreatedApplication, CreatedKey, NewApplication,
    Template,
};

/// An application to create.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewApplicationBody {
    /// Display name, one line.
    #[schema(min_length = 1, max_length = 200, required, nullable = false)]
    name: Option<String>,
    /// Where the application runs; cannot be changed later.
    #[serde(rename = "type")]
    #[schema(value_type = ApplicationKind, required)]
    kind: Option<String>,
    /// Permissions in all containers; `GET /permissions` lists them.
    #[schema(max_items = 50)]
    permissions: Option<Vec<String>>,
    /// Permissions in some containers; not for management applications. Permissions or rules are required.
    #[schema(value_type = Option<Vec<NewRuleBody>>, max_items = 100)]
    rules: Option<Vec<Object<NewRuleBody>>>,
    /// Whether to create a key, which is returned in this response only; true by default.
    create_key: Option<bool>,
    /// When the application and its keys expire. ISO 8601, or `month/day/year` with an optional time and offset.
    expires_at: Option<String>,
}

/// The new state of an application. Absent attributes are removed.
#[derive(Deserialize, ToSchema)]
pub(super) struct ApplicationChangeBody {
    /// Display name, one line.
    #[schema(min_length = 1, max_length = 200, required, nullable = false)]
    name: Option<String>,
    /// Permissions in all containers; `GET /permissions` lists them.
    #[schema(max_items = 50)]
    permissions: Option<Vec<String>>,
    /// Permissions in some containers; not for management applications. Permissions or rules are required.
    #[schema(value_type = Option<Vec<NewRuleBody>>, max_items = 100)]
    rules: Option<Vec<Object<NewRuleBody>>>,
}

/// A requested access rule.
#[derive(Deserialize, ToSchema)]
struct NewRuleBody {
    #[schema(min_length = 1, max_length = 1000, required, nullable = false)]
    description: Option<String>,
    /// Rules are evaluated from the lowest priority number up. Priorities are distinct.
    #[schema(minimum = 1, maximum = 2147483647, required, nullable = false)]
    priority: Option<i64>,
    /// This container and those below it.
    #[schema(value_type = Container, required)]
    container: Option<String>,
    /// Only sessions have conditions; here they are rejected rather than ignored.
    #[schema(ignore)]
    conditions: Option<serde_json::Value>,
    #[schema(value_type = Transform, required)]
    transform: Option<String>,
    /// Token permissions only.
    #[schema(min_items = 1, max_items = 50, required, nullable = false)]
    permissions: Option<Vec<String>>,
}

impl From<NewApplicationBody> for NewApplication {
    fn from(body: NewApplicationBody) -> Self {
        Self {
            name: body.name,
            kind: body.kind,
            grants: grants(body.permissions, body.rules),
            create_key: body.create_key.unwrap_or(true),
            expires_at: body.expires_at,
        }
    }
}

impl From<ApplicationChangeBody> for ApplicationChange {
    fn from(body: ApplicationChangeBody) -> Self {
        Self {
            name: body.name,
            grants: grants(body.permissions, body.rules),
        }
    }
}

fn grants(permissions: Option<Vec<String>>, rules: Option<Vec<Object<NewRuleBody>>>) -> NewGrants {
    let rule = |Object(rule): Object<NewRuleBody>| NewRule {
        description: rule.description,
        priority: rule.priority,
        container: rule.container,
        conditions: rule.conditions.map(|_| Vec::new()),
        transform: rule.transform,
        permissions: rule.permissions.unwrap_or_default(),
    };
    NewGrants {
        permissions: permissions.unwrap_or_default(),
        rules: rules.into_iter().flatten().map(rule).collect(),
    }
}

/// An application. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
pub(super) struct ApplicationBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    name: &'a str,
    /// The new key; only in the response to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<&'a str>,
    /// Oldest first.
    #[schema(max_items = 3)]
    keys: Vec<ApplicationKeyBody<'a>>,
    #[serde(rename = "type")]
    #[schema(value_type = ApplicationKind)]
    kind: &'static str,
    permissions: Vec<&'static str>,
    /// In order of priority.
    rules: Vec<RuleBody<'a>>,
    /// The application that created it; absent if an operator did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<Uuid>,
    #[schema(format = DateTime)]
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    modified_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    expires_at: Option<String>,
}

/// A key of an application.
#[derive(Serialize, ToSchema)]
pub(super) struct ApplicationKeyBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    /// The key itself; only in the response to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<&'a str>,
    /// The format of the key: `2`, or `1` for an imported key in the legacy format.
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<Uuid>,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Permissions in one container and below, and the transform for the data.
#[derive(Serialize, ToSchema)]
struct RuleBody<'a> {
    description: &'a str,
    priority: u32,
    container: Container,
    transform: Transform,
    permissions: Vec<&'static str>,
}

/// A permission and the application types that may hold it.
#[derive(Serialize, ToSchema)]
pub(super) struct PermissionBody {
    #[serde(rename = "type")]
    name: &'static str,
    description: &'static str,
    #[schema(value_type = Vec<ApplicationKind>)]
    application_types: Vec<&'static str>,
}

/// A template for the grants of an application.
#[derive(Serialize, ToSchema)]
pub(super) struct TemplateBody {
    id: Uuid,
    name: &'static str,
    description: &'static str,
    #[schema(value_type = ApplicationKind)]
    application_type: &'static str,
    template_type: &'static str,
    is_starter: bool,
    #[schema(value_type = Vec<RuleBody<'_>>)]
    rules: Vec<AccessRule>,
    permissions: Vec<&'static str>,
}

impl<'a> ApplicationBody<'a> {
    pub(super) fn new(tenant: TenantId, application: &'a Application) -> Self {
        let keys = application.keys.iter();
        Self {
            id: application.id,
            tenant_id: tenant.uuid,
            name: &application.name,
            key: None,
            keys: keys
                .map(|key| ApplicationKeyBody::new(tenant, key))
                .collect(),
            kind: application.kind.name(),
            permissions: names(application.grants.permissions.iter()),
            rules: application.grants.rules.iter().map(RuleBody::new).collect(),
            created_by: application.created_by,
            created_at: format_utc(application.created_at),
            modified_by: application.modified_by,
            modified_at: application.modified_at.map(format_utc),
            expires_at: application.expires_at.map(format_utc),
        }
    }

    pub(super) fn created(tenant: TenantId, created: &'a CreatedApplication) -> Self {
        let key = created.key.as_ref();
        Self {
            key: key.map(|key| key.key.expose()),
            keys: key
                .map(|key| ApplicationKeyBody::created(tenant, key))
                .into_iter()
                .collect(),
            ..Self::new(tenant, &created.application)
        }
    }
}

impl<'a> ApplicationKeyBody<'a> {
    pub(super) fn new(tenant: TenantId, key: &ApplicationKey) -> Self {
        Self {
            id: key.id,
            tenant_id: tenant.uuid,
            key: None,
            version: key.version(),
            created_by: key.created_by,
            created_at: format_utc(key.created_at),
        }
    }

    pub(super) fn created(tenant: TenantId, created: &'a CreatedKey) -> Self {
        Self {
            key: Some(created.key.expose()),
            ..Self::new(tenant, &created.into())
        }
    }
}

impl<'a> RuleBody<'a> {
    fn new(rule: &'a AccessRule) -> Self {
        Self {
            description: &rule.description,
            priority: rule.priority,
            container: rule.scope.reach(),
            transform: rule.transform,
            permissions: names(rule.permissions.iter()),
        }
    }
}

impl From<Permission> for PermissionBody {
    fn from(permission: Permission) -> Self {
        let kinds = permission.kinds().iter();
        Self {
            name: permission.name(),
            description: permission.description(),
            application_types: kinds.map(|kind| kind.name()).collect(),
        }
    }
}

impl From<&Template> for TemplateBody {
    fn from(template: &Template) -> Self {
        Self {
            id: template.id,
            name: template.name,
            description: template.description,
            application_type: template.kind.name(),
            template_type: template.category,
            is_starter: template.is_starter(),
            rules: template.rules(),
            permissions: names(template.permissions().iter()),
        }
    }
}

fn names(permissions: impl Iterator<Item = Permission>) -> Vec<&'static str> {
    permissions.map(Permission::name).collect()
}
