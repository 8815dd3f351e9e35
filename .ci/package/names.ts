/**
 * Names of the packages. None is registered yet, so no text tells people to install a package by its name.
 * The names of the SDK and the testing package are in their own builds, because programs import them.
 */
export const names = {
  /** npm package with the launcher. A platform package has this name with its target at the end. */
  npm: '@gatehouse/server',
  pypi: 'gatehouse-server',
  deb: 'gatehouse',
  image: 'gatehouse',
}

/**
 * Maintainer of the Debian package. The field must contain a mail address, and the project has none. Nobody
 * can register a name below `.invalid`, so mail to this address reaches no stranger (RFC 2606 section 2:
 * https://datatracker.ietf.org/doc/html/rfc2606#section-2).
 */
export const MAINTAINER = 'The Gatehouse developers <noreply@gatehouse.invalid>'
