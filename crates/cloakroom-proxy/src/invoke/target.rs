//! Which proxy a request invokes, and whether the caller may.

use std::sync::Arc;

use cloakroom_core::access::{ApplicationKind, Purpose};
use cloakroom_core::caller::Caller;
use cloakroom_egress::{DestinationUrl, HostList};
use cloakroom_platform::api::ApiError;
use cloakroom_platform::ids::TenantId;
use serde_json::{Map, Value};

use super::call::{Call, Selector};
use super::error::Error;
use super::withheld::Withheld;
use crate::proxies::{self, ProxyDefinition};
use crate::server::ProxyServer;

/// The destination of a request, and on whose behalf it is sent.
pub(super) struct Target {
    pub(super) base: DestinationUrl,
    pub(super) tenant: TenantId,
    /// `None` for an ephemeral proxy.
    pub(super) definition: Option<Arc<ProxyDefinition>>,
    /// The caller whose tokens the request may contain. `None` if expressions are sent as they are: by a proxy that is
    /// open to everyone, they would reveal tokens and configuration to anyone who controls the request.
    pub(super) replaces_for: Option<Arc<Caller>>,
}

impl Target {
    pub(super) async fn select(server: &ProxyServer, call: &Call) -> Result<Self, Error> {
        match call.selector.key()? {
            Some(key) => Self::configured(server, call, key).await,
            None => Self::ephemeral(call),
        }
    }

    /// Requires a private application that may use tokens.
    fn ephemeral(call: &Call) -> Result<Self, Error> {
        let caller = call.caller.clone().ok_or_else(ApiError::unauthorized)?;
        Purpose::Use.require_anywhere(&caller)?;
        // Sessions belong to public applications.
        if caller.application_kind != ApplicationKind::Private {
            return Err(Error::EphemeralNeedsPrivateKey);
        }
        if caller.settings.disable_ephemeral_proxy {
            return Err(Error::EphemeralDisabled);
        }
        let Selector::Url(Some(url)) = &call.selector else {
            return Err(Error::NoTarget);
        };
        Ok(Self {
            base: DestinationUrl::parse(url)?,
            tenant: caller.tenant,
            definition: None,
            replaces_for: Some(caller),
        })
    }

    /// Requires a caller that may use tokens, unless the proxy is open. A proxy is unknown to callers of other tenants.
    async fn configured(server: &ProxyServer, call: &Call, key: &str) -> Result<Self, Error> {
        let found = proxies::find_by_key(server, key).await;
        let definition = found.map_err(ApiError::from)?.ok_or(Error::UnknownProxy)?;
        let caller = call.caller.clone();
        if definition.require_auth && caller.is_none() {
            return Err(ApiError::unauthorized().into());
        }
        if caller
            .as_ref()
            .is_some_and(|it| it.tenant != definition.tenant)
        {
            return Err(Error::UnknownProxy);
        }
        let permitted = caller.as_ref().map(|it| Purpose::Use.require_anywhere(it));
        let may_use = matches!(permitted, Some(Ok(())));
        match permitted {
            Some(Err(denied)) if definition.require_auth => return Err(denied.into()),
            _ => {}
        }
        let allowed = &definition.allowed_requests;
        if !allowed.allows_method(&call.method) || !allowed.allows_path(&call.suffix) {
            return Err(Error::OperationNotAllowed);
        }
        let replaces = may_use && !definition.disable_detokenization;
        Ok(Self {
            base: DestinationUrl::parse(&definition.destination_url)?,
            tenant: definition.tenant,
            replaces_for: caller.filter(|_| replaces),
            definition: Some(definition),
        })
    }

    /// The tenant's list of allowed hosts, if it has one.
    pub(super) fn hosts(&self) -> Option<&HostList> {
        let settings = match (&self.definition, &self.replaces_for) {
            (Some(definition), _) => &definition.anonymous.settings,
            (None, caller) => &caller.as_ref()?.settings,
        };
        settings.egress_hosts.as_ref()
    }

    /// Whether requests or responses are transformed.
    pub(super) fn has_transforms(&self) -> bool {
        self.transforms_request() || self.transforms_response()
    }

    fn transforms_request(&self) -> bool {
        let definition = self.definition.as_ref();
        definition.is_some_and(|it| !it.transforms.request.is_empty())
    }

    pub(super) fn transforms_response(&self) -> bool {
        let definition = self.definition.as_ref();
        definition.is_some_and(|it| !it.transforms.response.is_empty())
    }

    /// Whether a request transform parses the body that is sent.
    pub(super) fn appends_json(&self) -> bool {
        let definition = self.definition.as_ref();
        definition.is_some_and(|it| it.transforms.append_json())
    }

    /// Whether responses may contain card numbers that transforms hide.
    pub(super) fn hides_in_response(&self) -> bool {
        let definition = self.definition.as_ref();
        definition.is_some_and(|it| it.transforms.hide_in_response())
    }

    /// Whether request transforms insert configuration values.
    pub(super) fn sends_configuration(&self) -> bool {
        let definition = self.definition.as_ref();
        definition.is_some_and(|it| it.transforms.send_configuration())
    }

    /// Whether transforms refer to the content of `BT-ENCRYPTED`.
    pub(super) fn transforms_read_encrypted(&self) -> bool {
        let definition = self.definition.as_ref();
        definition.is_some_and(|it| it.transforms.read_encrypted())
    }

    /// Withholds configuration values that are sent: only destinations receive them.
    pub(super) fn withhold_configuration(&self, withheld: &mut Withheld) {
        if !self.sends_configuration() {
            return;
        }
        for (_, value) in self.definition.iter().flat_map(|it| &*it.configuration) {
            withheld.add_secret(value);
        }
    }

    /// All configuration values, as an object, for keys of signatures.
    pub(super) fn configuration_value(&self) -> Value {
        let configuration = self.definition.iter().flat_map(|it| &*it.configuration);
        let members =
            configuration.map(|(name, value)| (name.clone(), value.expose().as_str().into()));
        Value::Object(members.collect::<Map<_, _>>())
    }
}
