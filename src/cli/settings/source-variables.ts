import { BASE_URL } from '../../domain/models/router.ts'
import { addressRangesSetting, minPointsSetting } from './article-settings.ts'
import { baseUrl, httpUrl, token, wholeNumber } from './rules.ts'
import { defaulted, optional } from './variable.ts'

/** What is collected, from where, and how models are evaluated. */
export const SOURCE_VARIABLES = {
  DASH_HN_URL: defaulted(httpUrl, 'https://hacker-news.firebaseio.com/v0', {
    group: 'sources',
    meaning: "base of Hacker News' item API",
  }),
  DASH_HN_SEARCH_URL: defaulted(httpUrl, 'https://hn.algolia.com/api/v1', {
    group: 'sources',
    meaning: "base of Hacker News' search",
  }),
  DASH_LOBSTERS_URL: defaulted(httpUrl, 'https://lobste.rs', {
    group: 'sources',
    meaning: 'base of Lobsters',
  }),
  DASH_LESSWRONG_URL: defaulted(httpUrl, 'https://www.lesswrong.com/graphql', {
    group: 'sources',
    meaning: "LessWrong's GraphQL endpoint",
  }),
  DASH_GITHUB_URL: defaulted(httpUrl, 'https://api.github.com', {
    group: 'sources',
    meaning: "base of GitHub's API",
  }),
  DASH_HUGGINGFACE_URL: defaulted(httpUrl, 'https://huggingface.co/api', {
    group: 'sources',
    meaning: "base of Hugging Face's API",
  }),
  DASH_REPLICATE_URL: defaulted(httpUrl, 'https://api.replicate.com/v1', {
    group: 'sources',
    meaning: "base of Replicate's API",
  }),
  DASH_REDDIT_URL: defaulted(httpUrl, 'https://www.reddit.com', {
    group: 'sources',
    meaning: 'base of Reddit, which gives and (the default: `https://oauth.reddit.com`) takes its tokens',
  }),
  GITHUB_TOKEN: optional(token, {
    group: 'sources',
    meaning: 'for collecting from GitHub at a higher rate',
    secret: true,
    page: 'docs/collecting.md#tokens',
  }),
  HF_TOKEN: optional(token, { group: 'sources', meaning: 'likewise from Hugging Face', secret: true }),
  REPLICATE_API_TOKEN: optional(token, {
    group: 'sources',
    meaning: 'without it Replicate is skipped',
    secret: true,
  }),
  REDDIT_CLIENT_ID: optional(token, {
    group: 'sources',
    meaning: "an application's id; without it Reddit is skipped",
    secret: true,
  }),
  REDDIT_CLIENT_SECRET: optional(token, {
    group: 'sources',
    meaning: 'its secret; likewise',
    secret: true,
  }),
  DASH_ARTICLE_MIN_POINTS: defaulted(minPointsSetting, 'hn=100,lobsters=20,lesswrong=30', {
    group: 'articles',
    meaning:
      'points from which on an item is given a text, by source; unnamed sources get none; a value replaces the default whole',
    page: 'docs/importing.md#names',
  }),
  DASH_ARTICLE_MAX_PER_RUN: defaulted(wholeNumber(0, 10_000), '200', {
    group: 'articles',
    meaning: 'items one run reads texts for, 0 to 10000; 0 reads none',
  }),
  DASH_ARTICLE_ALLOW_PRIVATE: optional(addressRangesSetting, {
    group: 'articles',
    meaning:
      "addresses and ranges (CIDR), comma-separated, that pages may be read from although they are not public; strangers' links then reach what it names, on any port: name as little as possible",
    page: 'docs/articles.md#safety',
  }),
  OPENROUTER_API_KEY: optional(token, {
    group: 'models',
    meaning: 'key of the model-routing service; without it `evaluate-models` refreshes metadata only',
    secret: true,
  }),
  OPENROUTER_BASE_URL: defaulted(baseUrl, BASE_URL, {
    group: 'models',
    meaning: 'API base of that service, without user, query or fragment; the key is sent to nowhere else',
  }),
  DASH_FREE_LLM_BASE_URL: defaulted(baseUrl, BASE_URL, {
    group: 'models',
    meaning:
      'address published with a recommendation, to which readers send their keys; `OPENROUTER_BASE_URL` is never published',
    page: 'docs/free-models.md',
  }),
} as const
