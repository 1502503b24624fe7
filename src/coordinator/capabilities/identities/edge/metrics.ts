import { familiesOf, gauge } from "../../metrics/edge/family.ts";

export const families = familiesOf("deployment", "leasehold_cron_end_timestamp_seconds", {
  leasehold_authority_expiry_timestamp_seconds: gauge(
    "When the certificate of the authority of client certificates expires, since 1970.",
    ({ view }) =>
      view.identities.authorities.map(({ name, expiresAtMs }) => [{ authority: name }, expiresAtMs / 1_000]),
    "authority",
  ),
});
