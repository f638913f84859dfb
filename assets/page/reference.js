// Starts the renderer of an interface's description, a package of its own loaded before this.
{
  const element = document.getElementById('reference')
  /** @type {{ SwaggerUIBundle?: (options: object) => void }} */
  const loaded = Object(globalThis)
  loaded.SwaggerUIBundle?.({
    url: element?.dataset['document'],
    domNode: element,
    validatorUrl: null,
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    docExpansion: 'full',
  })
}
