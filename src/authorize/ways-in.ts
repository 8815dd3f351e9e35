import type { Context } from '#src/context.ts'
import { listButtons } from '#src/directory/identity-providers/buttons.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { allowsRegistration } from '#src/directory/registrations/service.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'

/**
 * Returns the parts of an organization's login page other than the password form: provider buttons, links and
 * the passkey. `request` is the handle of the authorization request. `options` returns the request options of
 * a passkey. The preview in the console calls this function too, so that the preview has the same parts as
 * the page.
 */
export const waysIn = async (
  context: Context,
  organization: Organization,
  request: string,
  options: () => string,
) => ({
  providers: await listButtons(context.store, organization.id, request),
  ...(context.mail && { reset_url: `/oauth/reset-password?request=${request}` }),
  ...(context.mail &&
    settingsOf(organization).email_code !== 'off' && {
      code_url: `/oauth/email-code?request=${request}`,
    }),
  ...(allowsRegistration(context, organization) && { sign_up_url: `/oauth/sign-up?request=${request}` }),
  ...(offersPasskeys(context.config) && {
    passkey: {
      action: '/oauth/passkey',
      recover_url: `/oauth/recover?request=${request}`,
      options: options(),
    },
  }),
})
