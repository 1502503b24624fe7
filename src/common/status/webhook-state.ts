interface Endpoint {
  enabled: boolean;
  failing_since: string | null;
}

/** Whether an endpoint gets messages. FAILING: the last attempt failed. */
export function webhookState({ enabled, failing_since: since }: Endpoint): "DISABLED" | "FAILING" | "OK" {
  if (!enabled) return "DISABLED";
  return since === null ? "OK" : "FAILING";
}
