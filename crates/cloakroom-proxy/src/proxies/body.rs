//! JSON bodies of proxies.

use std::collections::BTreeMap;

use cloakroom_platform::api::{Object, format_utc, optional_object};
use cloakroom_platform::ids::TenantId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::proxy::{MASKED, Proxy, TransformList};
use crate::allowed_requests::AllowedRequests;
use crate::transforms::TransformBody;

/// A proxy to create, or the new state of one. Nothing in it is validated.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = NewProxyBody)]
pub struct NewProxy {
    /// Display name, one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200, required, nullable = false)]
    pub name: Option<String>,
    /// The base URL of the destination: `https`, a DNS name that the operator and the tenant allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 400, required, nullable = false)]
    pub destination_url: Option<String>,
    /// One request transform; an alternative to `request_transforms`.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub request_transform: Option<TransformBody>,
    /// One response transform; an alternative to `response_transforms`.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_transform: Option<TransformBody>,
    /// Transforms of the request, in order.
    #[serde(
        default,
        deserialize_with = "list_of_objects",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(max_items = 10)]
    pub request_transforms: Option<Vec<TransformBody>>,
    /// Transforms of a successful response, in order.
    #[serde(
        default,
        deserialize_with = "list_of_objects",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(max_items = 10)]
    pub response_transforms: Option<Vec<TransformBody>>,
    /// The application whose permissions `tokenize` has. Requires `application:grant` if it holds more than the key's
    /// own application.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub application: Option<ApplicationReference>,
    /// Values that `{{ config: NAME }}` refers to. Stored encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub configuration: Option<BTreeMap<String, Value>>,
    /// Whether invocations require an API key; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_auth: Option<bool>,
    /// Whether expressions of the caller are sent as they are; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_detokenization: Option<bool>,
    /// What callers may send. A replacement without it leaves it as it is, `{}` removes all restrictions.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub allowed_requests: Option<AllowedRequests>,
    /// Removed from the API; rejected rather than ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub request_reactor_id: Option<Value>,
    /// Removed from the API; rejected rather than ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub response_reactor_id: Option<Value>,
    /// Not built; rejected rather than ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub proxy_host: Option<Value>,
    /// Not built; rejected rather than ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub client_certificate: Option<Value>,
}

/// A reference to an application.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct ApplicationReference {
    #[schema(value_type = Uuid)]
    pub id: Option<String>,
}

fn list_of_objects<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<TransformBody>>, D::Error> {
    let list: Option<Vec<Object<TransformBody>>> = Option::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(|Object(body)| body).collect()))
}

impl NewProxy {
    /// The request for the current state of a proxy, which a merge patch is applied to.
    pub(super) fn of(proxy: &Proxy, is_masked: bool) -> Self {
        let sealed = &proxy.sealed;
        let shown = |value: &String| match is_masked {
            true => MASKED.into(),
            false => value.clone().into(),
        };
        let configuration = sealed.configuration.iter();
        let configuration: BTreeMap<String, Value> = configuration
            .map(|(name, value)| (name.clone(), shown(value)))
            .collect();
        Self {
            name: Some(proxy.name.clone()),
            destination_url: Some(proxy.destination_url.clone()),
            request_transform: sealed.request.single().cloned(),
            response_transform: sealed.response.single().cloned(),
            request_transforms: sealed.request.list().map(<[_]>::to_vec),
            response_transforms: sealed.response.list().map(<[_]>::to_vec),
            application: proxy.application.map(|id| ApplicationReference {
                id: Some(id.to_string()),
            }),
            configuration: (!configuration.is_empty()).then_some(configuration),
            require_auth: Some(sealed.require_auth),
            disable_detokenization: Some(sealed.disable_detokenization),
            allowed_requests: Some(sealed.allowed_requests.clone()),
            request_reactor_id: None,
            response_reactor_id: None,
            proxy_host: None,
            client_certificate: None,
        }
    }
}

/// A proxy. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
pub(super) struct ProxyBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    name: &'a str,
    /// Selects the proxy, in the header `BT-PROXY-KEY`.
    key: &'a str,
    destination_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_transform: Option<&'a TransformBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    response_transform: Option<&'a TransformBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_transforms: Option<&'a [TransformBody]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    response_transforms: Option<&'a [TransformBody]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    application_id: Option<Uuid>,
    /// Masked if the tenant setting `mask_proxy_configuration` is true.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    configuration: BTreeMap<&'a str, &'a str>,
    require_auth: bool,
    disable_detokenization: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    allowed_requests: Option<&'a AllowedRequests>,
    /// Always `active`: a proxy works as soon as it is stored.
    state: &'static str,
    /// The application that created it.
    created_by: Uuid,
    #[schema(format = DateTime)]
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    modified_at: Option<String>,
}

impl<'a> ProxyBody<'a> {
    /// `is_masked` is the tenant's setting for configuration values.
    pub(super) fn new(tenant: TenantId, proxy: &'a Proxy, is_masked: bool) -> Self {
        let sealed = &proxy.sealed;
        let shown = |value: &'a String| match is_masked {
            true => MASKED,
            false => value.as_str(),
        };
        let configuration = sealed.configuration.iter();
        Self {
            id: proxy.id,
            tenant_id: tenant.uuid,
            name: &proxy.name,
            key: &sealed.key,
            destination_url: &proxy.destination_url,
            request_transform: sealed.request.single(),
            response_transform: sealed.response.single(),
            request_transforms: sealed.request.list(),
            response_transforms: sealed.response.list(),
            application_id: proxy.application,
            configuration: configuration
                .map(|(name, value)| (name.as_str(), shown(value)))
                .collect(),
            require_auth: sealed.require_auth,
            disable_detokenization: sealed.disable_detokenization,
            allowed_requests: Some(&sealed.allowed_requests).filter(|it| !it.is_unrestricted()),
            state: "active",
            created_by: proxy.created_by,
            created_at: format_utc(proxy.created_at),
            modified_by: proxy.modified_by,
            modified_at: proxy.modified_at.map(format_utc),
        }
    }
}

impl TransformList {
    /// The transform that was sent as one object.
    fn single(&self) -> Option<&TransformBody> {
        self.transforms.first().filter(|_| self.is_single)
    }

    /// The transforms that were sent as a list.
    fn list(&self) -> Option<&[TransformBody]> {
        let is_list = !self.is_single && !self.transforms.is_empty();
        is_list.then_some(&self.transforms)
    }
}
