//! Invoking a proxy: `ANY /proxy` and below.

use utoipa_axum::router::OpenApiRouter;

use crate::server::ProxyServer;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<ProxyServer> {
    OpenApiRouter::new()
}
