/**
 * Names of the packages. None of these names is registered yet, so no text tells people to install a package
 * by its name. The SDK and the testing package are named in their own builds, because programs import them.
 */
export const names = {
  /** npm package with the launcher. A platform package adds its target to this name, as in `-linux-x64`. */
  npm: '@gatehouse/server',
  pypi: 'gatehouse-server',
  deb: 'gatehouse',
  image: 'gatehouse',
}

/**
 * Returns the version in Debian's form, such as 1.2.3~rc.1. Debian sorts this version before 1.2.3, because
 * only `~` sorts before the end: https://www.debian.org/doc/debian-policy/ch-controlfields.html#version
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
