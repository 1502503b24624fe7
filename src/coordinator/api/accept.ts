/**
 * How much an `Accept` header wants a media type: from 0, not at all, to 1. A range with a wildcard doesn't
 * count, because whoever sends it takes what is there.
 *
 * @param version the version that the type has; a range with another one doesn't count
 */
export function wanted(accept: string | undefined, type: string, version?: string): number {
  const weights = (accept ?? "").split(",").map((range) => {
    const [name, ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const given = new Map(
      parameters.map((parameter) => {
        const [key = "", value = ""] = parameter.split("=", 2).map((part) => part.trim());
        return [key, value.replaceAll('"', "")];
      }),
    );
    const isOther = version !== undefined && (given.get("version") ?? version) !== version;
    if (name !== type || isOther) return 0;
    const weight = Number(given.get("q") ?? 1);
    return weight >= 0 && weight <= 1 ? weight : 1;
  });
  return Math.max(...weights);
}
