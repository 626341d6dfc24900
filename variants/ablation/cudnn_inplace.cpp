// cudnn_inplace_mish with one choice of its pass changed each. The convolution before it is the same plan,
// so that a difference of times is one of passes. TF32, where the convolution takes least.

#include "variants/common/cudnn_inplace.hpp"

namespace convmish {
namespace {

Variant ablation(const char* name, const char* summary, Plan (*prepare)(const Problem&, MathClass)) {
  return cudnn_variant({.name = name, .summary = summary, .in_place = true, .group = Group::ablation},
                       MathClass::tf32, prepare);
}

constexpr ActivationForm kDefinition{.mish = MishForm::definition}, kFast{.arithmetic = Arithmetic::fast},
    kFastDefinition{.mish = MishForm::definition, .arithmetic = Arithmetic::fast};

const RegisterVariant rows[] = {
    {ablation("cudnn_inplace_mish_scalar", "as cudnn_inplace_mish, the pass by single floats",
              prepare_cudnn_inplace<ActivationForm{.width = 1}>)},
    {ablation("cudnn_inplace_mish_grid_stride",
              "as cudnn_inplace_mish, the pass by as many blocks as the GPU holds",
              prepare_cudnn_inplace<ActivationForm{.grid = GridForm::grid_stride}>)},
    {ablation("cudnn_inplace_mish_by_definition", "as cudnn_inplace_mish, Mish as x tanhf(log1pf(expf(x)))",
              prepare_cudnn_inplace<kDefinition>)},
    {ablation("cudnn_inplace_mish_fast_math", "as cudnn_inplace_mish; the pass built with --use_fast_math",
              prepare_cudnn_inplace<kFast>)},
    {ablation("cudnn_inplace_mish_by_definition_fast_math",
              "as cudnn_inplace_mish_by_definition; the pass built with --use_fast_math",
              prepare_cudnn_inplace<kFastDefinition>)},
};

}  // namespace
}  // namespace convmish
