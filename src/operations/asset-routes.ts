import type { Context } from '#src/context.ts'
import { organizationAsset } from '#src/directory/organizations/assets.ts'
import { userPicture } from '#src/directory/users/picture.ts'
import { callOf } from '#src/http/call.ts'
import { unmatchedError } from '#src/http/method-table.ts'
import { mount } from '#src/http/routes.ts'
import { accentAsset } from '#src/pages/accent.ts'
import { asset, touchIcon } from '#src/pages/assets.ts'

/**
 * Returns the routes of the files that pages load: built-in files, themes, styles and logos of organizations,
 * and pictures of users.
 */
export const assetRoutes = (context: Context) =>
  mount({
    'GET /favicon.ico': touchIcon,
    'GET /apple-touch-icon.png': touchIcon,
    'GET /assets/*': async ({ request }) => {
      const { path } = callOf(request)
      const found =
        asset(path) ??
        accentAsset(path) ??
        context.themes.asset(path) ??
        (await organizationAsset(context, path)) ??
        (await userPicture(context, path))
      if (!found) throw unmatchedError([], callOf(request))
      return found
    },
  })
