#!/bin/sh
# Runs workerd and ends it together with the process that started it, even if that process was killed. A
# runtime that is left behind would keep the port and the state folder.
if setpriv --pdeathsig KILL true 2>/dev/null; then
  exec setpriv --pdeathsig KILL "$LEASEHOLD_WORKERD" "$@"
fi
# Without setpriv, a loop checks every 100 ms whether both processes still exist.
starter=$PPID
(
  while kill -0 "$starter" && kill -0 $$; do sleep 0.1; done
  kill -9 $$
) </dev/null >/dev/null 2>&1 3>&- &
exec "$LEASEHOLD_WORKERD" "$@"
