"""Models that transformers_test.py compares with the `transformers` library: their config.json,
small and as published, how weft compiles them, and on what they run. No packages: tested without a
GPU (tests/cli/transformer_models_test.py)."""
import dataclasses
import random


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    config: dict  # of config.json; heads of 64 columns
    tokens: tuple  # sequences, and positions of each
    flags: tuple = ()  # of weft compile
    has_logits: bool = False
    global_positions: int = 0
    tile: int = 0  # of a block mask, of so many positions a side
    ragged: bool = False  # packed sequences, too
    shard: str = ''  # the most bytes of a file of weights, of a checkpoint in several


def output_of(result):
    """What transformers calls a result of a plan."""
    return {'logits': 'logits', 'pooled': 'pooler_output'}.get(result, 'last_hidden_state')


# Families that docs/config-json.md lists as whole models, and that are not compared: the names of
# their weights are not known (models/ConfigJson.cpp), as checkpoints stack their projections.
NOT_COMPARED = ('phi3',)

TINY_BERT = {
    'hidden_size': 128, 'num_attention_heads': 2, 'num_hidden_layers': 2, 'intermediate_size': 256,
    'vocab_size': 96, 'max_position_embeddings': 64, 'hidden_act': 'gelu', 'layer_norm_eps': 1e-12
}
BASE = {
    'hidden_size': 768, 'num_attention_heads': 12, 'num_hidden_layers': 12,
    'intermediate_size': 3072, 'vocab_size': 30522, 'max_position_embeddings': 512,
    'hidden_act': 'gelu', 'layer_norm_eps': 1e-12
}
LARGE = {
    **BASE, 'hidden_size': 1024, 'num_attention_heads': 16, 'num_hidden_layers': 24,
    'intermediate_size': 4096
}
DISENTANGLED = {
    'relative_attention': True, 'pos_att_type': ['c2p', 'p2c'], 'position_biased_input': False,
    'type_vocab_size': 0, 'layer_norm_eps': 1e-7
}
GPT2 = {'n_embd': 768, 'n_head': 12, 'n_layer': 12, 'n_positions': 1024, 'vocab_size': 50257}
LLAMA = {
    'hidden_size': 4096, 'num_attention_heads': 32, 'num_key_value_heads': 8,
    'num_hidden_layers': 4, 'intermediate_size': 14336, 'vocab_size': 128256,
    'max_position_embeddings': 8192, 'rope_theta': 500000.0, 'rms_norm_eps': 1e-5,
    'hidden_act': 'silu', 'tie_word_embeddings': False
}
TINY_LLAMA = {
    **LLAMA, 'hidden_size': 256, 'num_attention_heads': 4, 'num_key_value_heads': 2,
    'num_hidden_layers': 2, 'intermediate_size': 320, 'vocab_size': 96
}
NEO = {
    'hidden_size': 768, 'num_heads': 12, 'num_layers': 12, 'intermediate_size': 3072,
    'vocab_size': 50257, 'max_position_embeddings': 2048, 'window_size': 256,
    'attention_types': [[['global', 'local'], 6]], 'activation_function': 'gelu_new'
}


def distil(config):
    return {
        'dim': config['hidden_size'], 'n_heads': config['num_attention_heads'],
        'n_layers': config['num_hidden_layers'], 'hidden_dim': config['intermediate_size'],
        'vocab_size': config['vocab_size'],
        'max_position_embeddings': config['max_position_embeddings'], 'activation': 'gelu'
    }


def model(name, model_type, config, tokens, **more):
    return Model(name, {'model_type': model_type, **config}, tokens, **more)


TINY = [
    model('bert-tiny', 'bert', TINY_BERT, (3, 40), ragged=True),
    model('albert-tiny', 'albert', {**TINY_BERT, 'embedding_size': 32}, (3, 40), ragged=True),
    model('distilbert-tiny', 'distilbert', distil(TINY_BERT), (3, 40), ragged=True),
    model('deberta-tiny', 'deberta', {**TINY_BERT, **DISENTANGLED}, (3, 40)),
    model('gpt2-tiny', 'gpt2', {**GPT2, 'n_embd': 128, 'n_head': 2, 'n_layer': 2,
                                'n_positions': 64, 'vocab_size': 96}, (3, 40),
          has_logits=True),
    model('llama-tiny', 'llama', TINY_LLAMA, (3, 40), has_logits=True),
    model('gpt-neo-tiny', 'gpt_neo', {**NEO, 'hidden_size': 128, 'num_heads': 2, 'num_layers': 2,
                                      'intermediate_size': 256, 'vocab_size': 96,
                                      'max_position_embeddings': 64, 'window_size': 8,
                                      'attention_types': [[['global', 'local'], 1]]}, (3, 40),
          has_logits=True),
    *(model(f'{name}-tiny', name, {**TINY_BERT, 'max_position_embeddings': 66, 'pad_token_id': 1,
                                   'type_vocab_size': 2}, (3, 40), ragged=True)
      for name in ('roberta', 'camembert', 'xlm-roberta')),
    model('opt-tiny', 'opt', {'hidden_size': 128, 'num_attention_heads': 2, 'num_hidden_layers': 2,
                              'ffn_dim': 256, 'word_embed_proj_dim': 128, 'vocab_size': 96,
                              'max_position_embeddings': 64, 'activation_function': 'relu',
                              'do_layer_norm_before': True}, (3, 40), has_logits=True),
    model('bloom-tiny', 'bloom', {'hidden_size': 128, 'n_head': 2, 'n_layer': 2, 'vocab_size': 96,
                                  'layer_norm_epsilon': 1e-5}, (3, 40), has_logits=True),
    model('mpt-tiny', 'mpt', {'d_model': 128, 'n_heads': 2, 'n_layers': 2, 'expansion_ratio': 2,
                              'max_seq_len': 64, 'vocab_size': 96, 'no_bias': True}, (3, 40),
          has_logits=True),
    model('gemma-tiny', 'gemma', {**TINY_LLAMA, 'num_key_value_heads': 1, 'head_dim': 64,
                                  'hidden_act': 'gelu_pytorch_tanh',
                                  'hidden_activation': 'gelu_pytorch_tanh', 'rms_norm_eps': 1e-6,
                                  'tie_word_embeddings': True}, (3, 40), has_logits=True),
    # A window of fewer keys than there are positions.
    model('mistral-tiny', 'mistral', {**TINY_LLAMA, 'sliding_window': 16}, (3, 40),
          has_logits=True),
    model('qwen2-tiny', 'qwen2', {**TINY_LLAMA, 'use_sliding_window': False}, (3, 40),
          has_logits=True),
    model('qwen3-tiny', 'qwen3', {**TINY_LLAMA, 'head_dim': 64, 'use_sliding_window': False},
          (3, 40), has_logits=True),
    # Positions at which each kind of frequency turns differently: fast, slow and between.
    model('llama-3.1-tiny', 'llama', {**TINY_LLAMA, 'rope_scaling': {
        'rope_type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
        'original_max_position_embeddings': 32}}, (3, 40), has_logits=True),
    model('bert-sharded-tiny', 'bert', TINY_BERT, (3, 40), shard='200KB'),
    model('bigbird-tiny', 'big_bird', {**TINY_BERT, 'max_position_embeddings': 512,
                                       'attention_type': 'original_full'}, (2, 512), tile=64),
    model('longformer-tiny', 'longformer', {**TINY_BERT, 'attention_window': [32, 32],
                                            'max_position_embeddings': 258, 'pad_token_id': 1},
          (2, 256), flags=('--dim', 'a=3'), global_positions=3),
]
REAL = [
    model('bert-base', 'bert', BASE, (8, 512), ragged=True),
    model('bert-large', 'bert', LARGE, (8, 512), ragged=True),
    model('albert-base', 'albert', {**BASE, 'vocab_size': 30000, 'embedding_size': 128,
                                    'hidden_act': 'gelu_new'}, (8, 512), ragged=True),
    model('distilbert', 'distilbert', distil({**BASE, 'num_hidden_layers': 6}), (8, 512),
          ragged=True),
    model('deberta-base', 'deberta', {**BASE, **DISENTANGLED, 'vocab_size': 50265}, (8, 512)),
    model('gpt2', 'gpt2', GPT2, (8, 512), has_logits=True),
    # Four layers of Llama-3-8B.
    model('llama-3', 'llama', LLAMA, (1, 1024), has_logits=True),
    model('gpt-neo-125m', 'gpt_neo', NEO, (2, 1024), has_logits=True),
    model('bigbird-base', 'big_bird', {**BASE, 'vocab_size': 50358, 'hidden_act': 'gelu_new',
                                       'max_position_embeddings': 4096,
                                       'attention_type': 'original_full'}, (1, 4096), tile=64),
    model('longformer-base', 'longformer', {**BASE, 'vocab_size': 50265,
                                            'attention_window': 12 * [512],
                                            'max_position_embeddings': 4098, 'pad_token_id': 1},
          (1, 4096), flags=('--dim', 'a=8'), global_positions=8),
]


def tiles_of(one, seed=5):
    """Which tiles of scores a model with a block mask has, row by row: a window of three, two
    global ones, three at random (Zaheer et al. 2020, Fig. 1)."""
    count = one.tokens[1] // one.tile
    draws = random.Random(seed)
    rows = []
    for row in range(count):
        seen = {0, count - 1, *range(max(row - 1, 0), min(row + 2, count))}
        seen |= set(draws.sample([column for column in range(count) if column not in seen],
                                 min(3, count - len(seen))))
        is_global = row in (0, count - 1)
        rows.append([is_global or column in seen for column in range(count)])
    return rows


def npy(rows):
    """A file of NumPy with a boolean array."""
    header = f"{{'descr': '|b1', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += ' ' * (-(10 + len(header) + 1) % 64) + '\n'
    return (b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header.encode() +
            bytes(int(tile) for row in rows for tile in row))


def lengths_of(one, seed=5):
    """Tokens of each sequence where they are packed: one whole, the others of any length."""
    batch, longest = one.tokens
    draws = random.Random(seed)
    return [longest] + [draws.randint(1, longest) for _ in range(batch - 1)]


def compile_arguments(one, config, mask=None, packed=False):
    """Behind `weft compile`; `config`: the file; `mask`: that of tiles_of."""
    batch, length = one.tokens
    return [
        str(config), '--part', 'model', '--dtype', 'f16', '--dim', f'b={batch}', '--dim',
        f'j={length}', *one.flags, *(['--mask', f'{mask}(block={one.tile})'] if one.tile else []),
        *(['--ragged', 'j'] if packed else [])
    ]
