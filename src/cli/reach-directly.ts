/**
 * Keeps requests to `hosts` on this machine (names separated by commas) away from the proxy of HTTP_PROXY.
 * The proxy would get their tokens and could answer for a stopped server. `fetch` reads `NO_PROXY` only if
 * `no_proxy` is empty.
 */
export const reachDirectly = (hosts: string): void => {
  const given = process.env.no_proxy || process.env.NO_PROXY
  // `*` is left as it is, because curl and Python take it for all hosts only when it stands alone.
  if (given !== '*') process.env.no_proxy = [given, hosts].filter(Boolean).join()
}
