//! CPU time of dispatching a request, in process: finding its route, running the middleware, calling the handler.
//!
//! Compares three ways, with the routes of the API, middleware that does nearly nothing and a handler that returns a
//! constant. They take turns, so that other load on the machine affects all of them:
//!
//! - *table*: the router of the service. A route table, all middleware in one future, then the axum router.
//! - *layers*: the axum router alone, with one layer per middleware.
//! - *one layer*: the axum router alone, with all middleware in one layer.
//!
//! `taskset -c 0 cargo run --profile dist --package cloakroom-bench --example dispatch`
#![expect(clippy::print_stdout, reason = "it prints the measurement")]
#![expect(
    clippy::disallowed_methods,
    reason = "its routes are not part of the service"
)]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use mimalloc::MiMalloc;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::Value;
use tower::Service;
use zeroizing_alloc::ZeroAlloc;

#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

const DOCUMENT: &str = include_str!("../../../docs/api/openapi.json");
const ROUNDS: usize = 20;
const REQUESTS_PER_ROUND: u32 = 10_000;

/// What middleware shares.
#[derive(Clone, Default)]
struct Shared(Arc<AtomicU64>);

type Responding = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Middleware that looks at a header and counts, then runs `next`.
async fn pass<F: Future<Output = Response>>(
    shared: &Shared,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    if request.headers().contains_key("x-blocked") {
        return StatusCode::FORBIDDEN.into_response();
    }
    shared.0.fetch_add(1, Ordering::Relaxed);
    next(request).await
}

/// Ten middlewares in one future, as many as the router of the service has in front of a handler with a key.
async fn pass_all<F: Future<Output = Response>>(
    shared: &Shared,
    request: Request,
    handler: impl FnOnce(Request) -> F,
) -> Response {
    pass(shared, request, |request| {
        pass(shared, request, |request| {
            pass(shared, request, |request| {
                pass(shared, request, |request| {
                    pass(shared, request, |request| {
                        pass_half(shared, request, handler)
                    })
                })
            })
        })
    })
    .await
}

async fn pass_half<F: Future<Output = Response>>(
    shared: &Shared,
    request: Request,
    handler: impl FnOnce(Request) -> F,
) -> Response {
    pass(shared, request, |request| {
        pass(shared, request, |request| {
            pass(shared, request, |request| {
                pass(shared, request, |request| pass(shared, request, handler))
            })
        })
    })
    .await
}

async fn layer(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    pass(&shared, request, |request| next.run(request)).await
}

async fn one_layer(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    pass_all(&shared, request, |request| next.run(request)).await
}

async fn handler(State(_): State<Shared>, Path(id): Path<String>) -> String {
    id
}

async fn handler_without_id(State(_): State<Shared>) -> &'static str {
    "all"
}

/// The paths of the API and their methods.
fn routes() -> Result<Vec<(String, Vec<Method>)>> {
    let document: Value = serde_json::from_str(DOCUMENT)?;
    let paths = document["paths"].as_object().context("no paths")?;
    let routes = paths.iter().map(|(path, item)| {
        let methods = item.as_object().into_iter().flat_map(|item| item.keys());
        let methods = methods.map(|name| Ok(name.to_uppercase().parse()?));
        Ok((path.clone(), methods.collect::<Result<_>>()?))
    });
    routes.collect()
}

fn axum_router(routes: &[(String, Vec<Method>)]) -> Result<Router<Shared>> {
    let mut router = Router::new();
    for (path, methods) in routes {
        for method in methods {
            let filter = MethodFilter::try_from(method.clone())?;
            let handlers = match path.contains("/{id}") && !path.contains("{key_id}") {
                true => on(filter, handler),
                false => on(filter, handler_without_id),
            };
            router = router.route(path, handlers);
        }
    }
    Ok(router)
}

/// The router of the service: its own route table in front of the axum router.
struct Table {
    paths: matchit::Router<Vec<Method>>,
    router: Router,
    shared: Shared,
}

impl Table {
    fn call(self: &Arc<Self>, request: Request) -> Responding {
        let table = Arc::clone(self);
        Box::pin(async move { Ok(table.respond(request).await) })
    }

    async fn respond(&self, request: Request) -> Response {
        let path = request.uri().path();
        let found = self.paths.at(path).ok().filter(|_| is_plain(path));
        let Some(found) = found.filter(|found| found.value.contains(request.method())) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let mut router = self.router.clone();
        let _authentication = found.value;
        pass_all(&self.shared, request, |request| async move {
            let Ok(response) = router.call(request).await;
            response
        })
        .await
    }
}

/// Every way rejects empty segments and normalizes a trailing slash first.
fn is_plain(path: &str) -> bool {
    !path.contains("//") && !path.ends_with('/')
}

fn request(number: u32) -> Result<Request> {
    let uri = format!("/tokens/c06d0789-0a38-40be-b7cc-{number:012}");
    let request = Request::get(uri)
        .header("host", "vault.example.com")
        .header("bt-api-key", "key_test_us_pvt_c06d07890a3840beb7cc")
        .header("accept", "application/json");
    Ok(request.body(Body::empty())?)
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let ns = |time: TimeVal| time.tv_sec() * 1_000_000_000 + time.tv_usec() * 1_000;
    Ok(ns(usage.user_time()) + ns(usage.system_time()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let shared = Shared::default();
    let routes = routes()?;
    let mut paths = matchit::Router::new();
    for (path, methods) in &routes {
        paths.insert(path, methods.clone())?;
    }
    let table = Arc::new(Table {
        paths,
        router: axum_router(&routes)?.with_state(shared.clone()),
        shared: shared.clone(),
    });
    let mut layered = axum_router(&routes)?;
    for _ in 0..10 {
        layered = layered.layer(from_fn_with_state(shared.clone(), layer));
    }
    let mut layered = layered.with_state(shared.clone());
    let once = axum_router(&routes)?.layer(from_fn_with_state(shared.clone(), one_layer));
    let mut once = once.with_state(shared.clone());
    let mut bare = axum_router(&routes)?.with_state(shared);

    type Call<'a> = Box<dyn FnMut(Request) -> Responding + 'a>;
    let boxed = |router: &mut Router, request| -> Responding { Box::pin(router.call(request)) };
    let mut ways: [(&str, Call<'_>, Vec<i64>); 4] = [
        (
            "no middleware",
            Box::new(|it| boxed(&mut bare, it)),
            Vec::new(),
        ),
        ("table", Box::new(|it| table.call(it)), Vec::new()),
        ("layers", Box::new(|it| boxed(&mut layered, it)), Vec::new()),
        ("one layer", Box::new(|it| boxed(&mut once, it)), Vec::new()),
    ];
    println!("{} paths", routes.len());
    for _ in 0..ROUNDS {
        for (_, call, times) in &mut ways {
            let started_at = cpu_ns()?;
            for number in 0..REQUESTS_PER_ROUND {
                let Ok(response) = call(request(number)?).await;
                assert_eq!(response.status(), StatusCode::OK);
            }
            times.push((cpu_ns()? - started_at) / i64::from(REQUESTS_PER_ROUND));
        }
    }
    for (name, _, mut times) in ways {
        times.sort_unstable();
        println!(
            "{name:14} {:6} ns per request; {} to {}",
            times[times.len() / 2],
            times[0],
            times[times.len() - 1]
        );
    }
    Ok(())
}
