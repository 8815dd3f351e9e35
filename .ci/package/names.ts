/**
 * All names under which packages are built. None is registered yet, so no text tells people to install one by
 * name.
 */
export const names = {
  /** npm package with the launcher; the platform packages add their target. */
  npm: '@gatehouse/server',
  pypi: 'gatehouse-server',
  deb: 'gatehouse',
  image: 'gatehouse',
}
