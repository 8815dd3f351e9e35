import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { Field, Refusals } from '../fields.tsx'
import { Card } from '../parts.tsx'
import { words } from '../words.ts'

type Client = (typeof ClientAnswer)['_output']
type Addresses = 'client_uri' | 'policy_uri' | 'tos_uri' | 'initiate_login_uri'

const read = (file: File, done: (uri: string) => void): void => {
  const reader = new FileReader()
  reader.onload = () => done(String(reader.result))
  reader.readAsDataURL(file)
}

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
      <div class="field">
        <label for="logo">{words.client.logo}</label>
        <div class="logo-input">
          {client.logo && <img src={client.logo} alt="" />}
          <input
            id="logo"
            type="file"
            accept="image/png,image/svg+xml,image/webp,image/jpeg"
            aria-describedby="logo-about"
            onChange={({ currentTarget }) => {
              const file = currentTarget.files?.[0]
              if (file) read(file, logo => onChange({ logo }))
            }}
          />
          {client.logo && (
            <button type="button" onClick={() => onChange({ logo: null })}>
              {words.client.logoRemove}
            </button>
          )}
        </div>
        <div id="logo-about">
          <p class="hint">{words.client.logoHint}</p>
          <Refusals name="logo" />
        </div>
      </div>
      {address('client_uri', words.client.homePage, words.client.homePageHint)}
      {address('initiate_login_uri', words.client.startsLogin, words.client.startsLoginHint)}
      {address('policy_uri', words.client.policy)}
      {address('tos_uri', words.client.terms)}
    </Card>
  )
}
