import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import {
  type AttributeErrors,
  attributeFields,
  missingAttributes,
} from '#src/directory/users/attribute-form.ts'
import { findUser } from '#src/directory/users/store.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import type { StepUser } from './eligible-logins.ts'
import { type BrowserSession, type StoredFlow, stepToken } from './flow.ts'
import { exitOf, show } from './step-pages.ts'

/** Returns the user of the step and the required attributes that are missing. */
export const findMissing = async (context: Context, { organization }: StoredFlow, { user_id }: StepUser) => {
  const user = await context.store.read(q => findUser(q, organization.id, user_id))
  if (!user) throw new PageError('expired', 400)
  return { user, missing: missingAttributes(settingsOf(organization).user_attributes, user.attributes) }
}

/** Asks for required attributes. */
export const attributesPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: StepUser,
  refused?: { form: ReadonlyMap<string, string>; errors: AttributeErrors },
): Promise<Response> => {
  const { user, missing } = await findMissing(context, flow, login)
  return show(
    context,
    'attributes',
    browser,
    flow,
    {
      action: '/oauth/attributes',
      request: flow.handle,
      csrf_token: stepToken(context, flow, 'attributes', login.id),
      user: pageUserOf(login),
      attributes: attributeFields(missing, user.attributes, refused),
      ...exitOf(context, flow, login.id),
    },
    refused && { data: {}, status: 400 },
  )
}
