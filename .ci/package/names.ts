/**
 * Names under which packages are built. None is registered yet, so no text tells people to install one by
 * name. The SDK and the testing package have theirs in their own builds: programs import them by it.
 */
export const names = {
  /** npm package with the launcher; the platform packages add their target. */
  npm: '@gatehouse/server',
  pypi: 'gatehouse-server',
  deb: 'gatehouse',
  image: 'gatehouse',
}

/**
 * Maintainer of the Debian package, whose form wants an address. The project has none: nobody can register a
 * name below `.invalid`, so mail reaches no stranger (RFC 2606 section 2:
 * https://datatracker.ietf.org/doc/html/rfc2606#section-2).
 */
export const MAINTAINER = 'The Gatehouse developers <noreply@gatehouse.invalid>'
