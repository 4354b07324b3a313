//! The edge machine: HAProxy for clients, and Redis.

use std::path::PathBuf;

use anyhow::Result;

use super::command::capture;
use super::machine::Machine;

pub(crate) struct Edge {
    pub(crate) machine: Machine,
    /// Redis has its own address, so that it can be partitioned separately.
    pub(crate) redis_address: String,
}

impl Edge {
    pub(crate) fn config_folder(&self) -> PathBuf {
        self.machine.folder.join("config")
    }

    pub(crate) fn start_proxy(&self) -> Result<()> {
        let mut haproxy = self.machine.command("haproxy", false);
        haproxy.arg("-db").arg("-f");
        haproxy.arg(self.config_folder().join("haproxy-api.cfg"));
        self.machine.spawn("haproxy", haproxy)
    }

    pub(crate) fn start_redis(&self) -> Result<()> {
        let mut redis = self.machine.command("redis-server", false);
        redis.arg(self.config_folder().join("redis.conf"));
        self.machine.spawn("redis", redis)
    }

    /// Sets the state of a node in HAProxy, such as `drain` or `ready`.
    pub(crate) async fn set_state(&self, node: &str, state: &str) -> Result<()> {
        let socket = self.machine.folder.join("haproxy.sock");
        let line = format!("set server nodes/{node} state {state}\n");
        let mut python = self.machine.command("/usr/bin/python3", false);
        python.args([
            "-c",
            "import socket, sys\n\
             s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
             s.sendall(sys.argv[2].encode()); print(s.recv(1000).decode())",
        ]);
        python.arg(socket).arg(line);
        capture(python).await?;
        Ok(())
    }
}
