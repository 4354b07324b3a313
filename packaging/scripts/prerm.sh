#!/bin/sh
# Before a removal: stops the node and the timer. During an upgrade it keeps running until the new version restarts it.
set -e

case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl disable --now cloakroom-erasures.timer cloakroom.service
        fi
        ;;
esac
