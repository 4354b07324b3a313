#!/bin/sh
# Before a removal: stops the node and the timer. During an upgrade it keeps running until it is restarted.
set -e

case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl disable --now cloakroom-erasures.timer cloakroom.service
        fi
        ;;
esac
