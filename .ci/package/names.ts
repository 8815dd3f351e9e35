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
 * Returns the version in the form of Debian, in which only `~` sorts before the end: 1.2.3~rc.1 is older than
 * 1.2.3. https://www.debian.org/doc/debian-policy/ch-controlfields.html#version
 */
export const debianVersion = (version: string): string => version.replace('-', '~')

/**
 * Returns the version in the form of Python, such as 1.2.3rc1:
 * https://packaging.python.org/en/latest/specifications/version-specifiers/#pre-releases
 */
export const pythonVersion = (version: string): string =>
  version.replace('-alpha.', 'a').replace('-beta.', 'b').replace('-rc.', 'rc')

/**
 * Maintainer of the Debian package. The field must contain a mail address, and the project has none. Nobody
 * can register a name below `.invalid`, so mail to this address reaches no stranger (RFC 2606 section 2:
 * https://datatracker.ietf.org/doc/html/rfc2606#section-2).
 */
export const MAINTAINER = 'The Gatehouse developers <noreply@gatehouse.invalid>'
