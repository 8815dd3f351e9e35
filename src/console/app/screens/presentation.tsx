import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { Field } from '../fields.tsx'
import { Card } from '../parts.tsx'
import { PictureField } from '../picture-field.tsx'
import { words } from '../words.ts'

type Client = (typeof ClientAnswer)['_output']
type Addresses = 'client_uri' | 'policy_uri' | 'tos_uri' | 'initiate_login_uri'

/** Edits how an application is shown to people on the consent page and in their account. */
export const Presentation = (props: { client: Client; onChange(change: Partial<Client>): void }) => {
  const { client, onChange } = props
  const address = (name: Addresses, label: string, hint?: string) => (
    <Field
      name={name}
      label={label}
      {...(hint && { hint })}
      autocomplete="off"
      spellcheck={false}
      value={client[name] ?? ''}
      onValue={text => onChange({ [name]: text === '' ? null : text })}
    />
  )
  return (
    <Card title={words.client.presentation} lead={words.client.presentationLead}>
      <PictureField
        name="logo"
        label={words.client.logo}
        hint={words.client.logoHint}
        value={client.logo}
        onValue={logo => onChange({ logo })}
      />
      {address('client_uri', words.client.homePage, words.client.homePageHint)}
      {address('initiate_login_uri', words.client.startsLogin, words.client.startsLoginHint)}
      {address('policy_uri', words.client.policy)}
      {address('tos_uri', words.client.terms)}
    </Card>
  )
}
