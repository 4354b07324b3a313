//! An [`Egress`] with scripted names.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_platform::config::{Config, Ports};
use cloakroom_platform::ids::TenantId;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use uuid::Uuid;

use super::{Authority, Server};
use crate::resolve::Names;
use crate::{BodyError, Destination, DestinationUrl, Egress, ResponseBody, SendError, Timeouts};

pub(in crate::tests) const TENANT: TenantId = tenant(1);

pub(in crate::tests) struct Client {
    pub(in crate::tests) egress: Egress,
    pub(in crate::tests) url: DestinationUrl,
    pub(in crate::tests) timeouts: Timeouts,
}

pub(in crate::tests) const fn tenant(number: i32) -> TenantId {
    TenantId {
        number,
        uuid: Uuid::from_u128(number as u128),
    }
}

pub(in crate::tests) fn empty() -> Request<Empty<Bytes>> {
    Request::new(Empty::new())
}

impl Client {
    /// Reaches `server` as `psp.example`, and trusts `authority`.
    pub(in crate::tests) fn new(authority: &Authority, server: &Server) -> Self {
        Self::with(authority, server, |_| {})
    }

    pub(in crate::tests) fn with(
        authority: &Authority,
        server: &Server,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let address = server.address.ip();
        Self::with_names(authority, server, move |_| vec![address], change)
    }

    pub(in crate::tests) fn with_names(
        authority: &Authority,
        server: &Server,
        names: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let port = server.address.port();
        let mut config = Config::default();
        config.egress.ports = Ports::new(vec![443, port]);
        config.egress.allow_private_networks = "127.0.0.1/32".parse().unwrap();
        config.egress.ca_file = Some(authority.file());
        change(&mut config);
        Self {
            egress: Egress::with_names(&config, Names::Scripted(Box::new(names))).unwrap(),
            url: DestinationUrl::parse(&format!("https://psp.example:{port}/v1")).unwrap(),
            timeouts: Timeouts {
                connect: Duration::from_secs(5),
                head: Duration::from_secs(5),
                idle: Duration::from_secs(5),
                total: Duration::from_secs(20),
            },
        }
    }

    pub(in crate::tests) fn destination(&self) -> Destination<'_> {
        Destination {
            url: &self.url,
            tenant: TENANT,
            hosts: None,
            has_sensitive_head: false,
        }
    }

    pub(in crate::tests) async fn get(&self) -> Result<Response<ResponseBody>, SendError> {
        self.get_as(TENANT).await
    }

    pub(in crate::tests) async fn get_as(
        &self,
        tenant: TenantId,
    ) -> Result<Response<ResponseBody>, SendError> {
        let destination = Destination {
            tenant,
            ..self.destination()
        };
        self.egress.send(destination, empty(), &self.timeouts).await
    }

    /// Sends a GET request and reads the whole response.
    pub(in crate::tests) async fn get_text(&self) -> Result<String, SendError> {
        Ok(body_text(self.get().await?).await.unwrap())
    }
}

pub(in crate::tests) async fn body_text(
    response: Response<ResponseBody>,
) -> Result<String, BodyError> {
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}
